"""The shapes of events are those of AWS."""

from durable.local.events import HttpRequest, http_event, queue_event, rate_event

ARN = "arn:aws:sqs:us-east-1:123456789012:durable-runs.fifo"


def request(target: str = "/runs", *, headers=(), body: bytes = b"", method: str = "POST") -> HttpRequest:
    return HttpRequest(method, target, headers, body)


def test_a_queue_message_becomes_a_record_with_its_attributes():
    message = {
        "MessageId": "m-1",
        "ReceiptHandle": "handle",
        "Body": "{}",
        "Attributes": {"SentTimestamp": "1764500000000", "SequenceNumber": "7", "ApproximateReceiveCount": "1"},
    }
    record = queue_event([message], queue_arn=ARN, region="us-east-1")["Records"][0]
    assert record["messageId"] == "m-1"
    assert record["attributes"]["SequenceNumber"] == "7"
    assert record["eventSource"] == "aws:sqs"
    assert record["eventSourceARN"] == ARN
    assert record["md5OfBody"] == "99914b932bd37a50b983c5e7c90ae93b"


def test_a_rate_tells_its_time_in_utc():
    event = rate_event(1_764_500_000.9, rule="EveryMinute", region="us-east-1")
    assert event["time"] == "2025-11-30T10:53:20Z"
    assert event["detail-type"] == "Scheduled Event"


def test_an_http_request_has_lower_case_headers_and_its_path_decoded():
    event = http_event(request("/runs/a%40b?limit=5&status=open", headers=[("X-One", "1"), ("x-one", "2")]), 0.0)
    assert event["rawPath"] == event["requestContext"]["http"]["path"] == "/runs/a@b"
    assert event["rawQueryString"] == "limit=5&status=open"
    assert event["queryStringParameters"] == {"limit": "5", "status": "open"}
    assert event["headers"] == {"x-one": "1,2"}
    assert event["requestContext"]["http"]["method"] == "POST"


def test_cookies_stand_apart_from_the_headers():
    event = http_event(request(headers=[("Cookie", "a=1; b=2")]), 0.0)
    assert event["cookies"] == ["a=1", "b=2"]
    assert "cookie" not in event["headers"]


def test_a_request_without_a_body_or_query_has_no_such_keys():
    event = http_event(request(method="GET"), 0.0)
    assert event.keys().isdisjoint({"body", "queryStringParameters", "cookies"})


def test_a_json_body_is_text_and_another_is_encoded():
    text = http_event(
        request(headers=[("content-type", "application/json; charset=utf-8")], body='{"ü":1}'.encode()), 0.0
    )
    assert (text["body"], text["isBase64Encoded"]) == ('{"ü":1}', False)
    form = http_event(request(headers=[("content-type", "application/x-www-form-urlencoded")], body=b"{}"), 0.0)
    assert (form["body"], form["isBase64Encoded"]) == ("e30=", True)


def test_a_body_that_is_no_text_is_encoded_whatever_its_type_says():
    event = http_event(request(headers=[("content-type", "application/json")], body=b"\xff"), 0.0)
    assert (event["body"], event["isBase64Encoded"]) == ("/w==", True)

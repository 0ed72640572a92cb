"""Blobs in a bucket."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from durable.adapters.errors import code_of, translated
from durable.errors import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from types_boto3_s3.client import S3Client


class S3Blobs:
    """Implements `Blobs`. The client is made when it is first needed: most runs keep nothing here."""

    def __init__(self, make_client: Callable[[], S3Client], bucket: str) -> None:
        self._make_client = make_client
        self._bucket = bucket

    @cached_property
    def _client(self) -> S3Client:
        return self._make_client()

    def put(self, key: str, data: bytes) -> None:
        with translated("S3"):
            self._client.put_object(Bucket=self._bucket, Key=key, Body=data)

    def get(self, key: str) -> bytes | None:
        with translated("S3"):
            try:
                return self._client.get_object(Bucket=self._bucket, Key=key)["Body"].read()
            except ClientError as error:
                if code_of(error) != "NoSuchKey":
                    raise
                return None

    def delete(self, prefix: str) -> None:
        with translated("S3"):
            for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix):
                # A page has 1,000 keys, which is what one request may delete (S3 API reference, DeleteObjects).
                keys = [{"Key": item["Key"]} for item in page.get("Contents", []) if "Key" in item]
                if keys:
                    doomed: Any = {"Objects": keys, "Quiet": True}
                    if left := self._client.delete_objects(Bucket=self._bucket, Delete=doomed).get("Errors"):
                        told = left[0].get("Code", "")  # in a reply that is no error
                        raise StoreUnavailable(f"S3: {len(left)} objects were not deleted ({told})")

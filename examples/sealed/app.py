"""A prescription whose every payload is sealed: the table, the queues and the bucket hold nothing that can be read."""

import boto3
from pydantic import BaseModel

from durable import App, Context, Signal
from examples.sealed.kms import KmsCodec

KEY = "alias/prescriptions"

app = App("sealed", codec=KmsCodec(lambda: boto3.client("kms"), KEY, app="sealed"))


class Prescription(BaseModel):
    patient: str
    drug: str
    allergies: list[str] = []


class Rejected(Exception):
    """The drug must not be given."""


CONSENT = Signal("consent", str)


@app.remote_step(retries=0)
def dispense(prescription: Prescription) -> str:
    return f"{prescription.drug} for {prescription.patient}"


def check(prescription: Prescription) -> str:
    if prescription.drug in prescription.allergies:
        raise Rejected(f"{prescription.patient} is allergic to {prescription.drug}")
    return f"{prescription.patient} may take {prescription.drug}"


@app.workflow
async def prescribe(ctx: Context, prescription: Prescription) -> str:
    await ctx.step(check, prescription)
    ctx.set_state("waits for", prescription.patient)
    signed = await ctx.wait_for_signal(CONSENT, timeout="2 days")
    box = await ctx.call(dispense, prescription)
    return f"{box}, signed {signed}"

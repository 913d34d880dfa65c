"""Programs as plain data: a JSON-able document and content-addressed blobs, and back, exactly.

`encode` and `decode` work on artifacts of every kind that can be kept; `fingerprint` digests the half of the same
document that says what a program means. Nothing is pickled and nothing that comes from a document is executed.
Torch and ExecuTorch are imported when they are needed.
"""

from stages.codec.artifacts import KEPT, decode, encode, fingerprint, fingerprint_of_document

__all__ = ["KEPT", "decode", "encode", "fingerprint", "fingerprint_of_document"]

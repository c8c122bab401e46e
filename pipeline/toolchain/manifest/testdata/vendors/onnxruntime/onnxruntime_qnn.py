"""Stands in for onnxruntime_qnn, by the module of version 2.7.0."""

__version__ = "0.0.0"


def get_library_path():
    return "/stand-in/libonnxruntime_providers_qnn.so"

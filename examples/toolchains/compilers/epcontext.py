#!/bin/sh
''''exec "$(dirname -- "$0")/python" -s -B "$0" "$@" # '''
"""Makes an EPContext model by ONNX Runtime, for ort-tensorrt.yaml and qnn.yaml: epcontext.py MODEL OUT PROVIDER [PACKAGE] [OPTION=VALUE]...
PACKAGE brings a provider that is a plugin. It lies in the folder bin of a Python environment, beside its python. Open dimensions become 1,
as with trtexec; the provider has to take all of the model."""

import importlib
import sys

import onnx
import onnxruntime

if sys.argv[1] == "--version":
    print("epcontext", importlib.import_module((sys.argv[2:] or ["onnxruntime"])[0]).__version__)
    sys.exit()

source, out, provider, *rest = sys.argv[1:]
plugin = importlib.import_module(rest.pop(0)) if rest and "=" not in rest[0] else None
options = dict(option.split("=", 1) for option in rest)
model = onnx.load(source)
for value in [*model.graph.input, *model.graph.output]:
    for dimension in value.type.tensor_type.shape.dim:
        if not dimension.HasField("dim_value"):
            dimension.dim_value = 1
onnx.save(model, "fixed.onnx", save_as_external_data=True, location="fixed.data")  # in the folder of the job

settings = onnxruntime.SessionOptions()
for name, value in {"session.disable_cpu_ep_fallback": "1", "ep.context_enable": "1", "ep.context_file_path": out, "ep.context_embed_mode": "1"}.items():
    settings.add_session_config_entry(name, value)
if plugin:
    onnxruntime.register_execution_provider_library(provider, plugin.get_library_path())
    settings.add_provider_for_devices([d for d in onnxruntime.get_ep_devices() if d.ep_name == provider][:1], options)
    onnxruntime.InferenceSession("fixed.onnx", settings)
else:
    if provider not in onnxruntime.get_available_providers():
        sys.exit(f"this ONNX Runtime has no {provider}")
    onnxruntime.InferenceSession("fixed.onnx", settings, providers=[(provider, options)], enable_fallback=0)
left = {node.op_type for node in onnx.load(out).graph.node} - {"EPContext"}
if left:
    sys.exit(f"{provider} leaves nodes of the model: {', '.join(sorted(left))}")

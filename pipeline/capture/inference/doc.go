// Package inference reads tensors from requests and answers of the Open Inference Protocol, version 2,
// over REST: JSON, and the binary tensor data extension, plain or compressed. Its input comes from
// strangers, so [Limits] bound all its allocations.
//
// The protocol: https://github.com/kserve/open-inference-protocol (specification/protocol/inference_rest.md).
// The extension: https://github.com/triton-inference-server/server (docs/protocol/extension_binary_data.md).
package inference

import "mlpromote.dev/mlpromote/validators/tensor"

// HeaderLength is the HTTP header with the bytes of JSON that binary data follows.
const HeaderLength = "Inference-Header-Content-Length"

// Limits bound the memory that this process allocates for one body. The zero Limits allow nothing.
type Limits struct {
	Bytes int64 // of the body when it is unpacked, and of all tensors together
}

// Bounds of a body that no service needs to exceed.
const (
	maxTensors = 256
	maxRank    = 16
	maxName    = 256 // bytes
	maxShape   = 512 // bytes of JSON
)

// Tensor is one input or output of a body.
type Tensor struct {
	Name string
	tensor.Tensor
}

// Side selects the tensors of a body.
type Side string

// The sides of an inference.
const (
	Inputs  Side = "inputs"
	Outputs Side = "outputs"
)

// dtypes are the types of the protocol that have a fixed size. BYTES, which are texts, has none.
var dtypes = map[string]tensor.DType{
	"BOOL":  tensor.Bool,
	"UINT8": tensor.Uint8, "UINT16": tensor.Uint16, "UINT32": tensor.Uint32, "UINT64": tensor.Uint64,
	"INT8": tensor.Int8, "INT16": tensor.Int16, "INT32": tensor.Int32, "INT64": tensor.Int64,
	"FP16": tensor.Float16, "BF16": tensor.BFloat16, "FP32": tensor.Float32, "FP64": tensor.Float64,
}

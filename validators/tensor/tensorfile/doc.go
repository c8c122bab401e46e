// Package tensorfile reads and writes files of tensors. Files are untrusted: safetensors ([Open]) are checked completely
// before the first tensor is returned, and then read lazily by ranges of rows; npy and npz ([ReadNpy], [ReadNpz]) are read
// without ever executing pickles in them. [Limits] bound all allocations.
package tensorfile

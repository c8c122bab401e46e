// Package ort is the driver of ONNX Runtime. It runs in a child process, which executes this
// program again, because ONNX Runtime parses untrusted bytes in C++, and because a process can
// load only one build of the library.
//
// [New] is the parent's side. [Main] is the child's side, for the hidden command `mlpromote
// driver onnxruntime`. It loads the shared library of the install, the same file that the
// Python driver loads. A build without cgo reports the driver as unavailable.
//
// Verbs: probe returns the version, and the inputs and outputs of models. compile writes the
// graph after ONNX Runtime's optimization; for a given version, level and model the bytes are
// always the same. run runs engines on cases, as toolchain.RunOptions describes.
package ort

// Package ort is the driver of ONNX Runtime, in a child process that is our own
// program started again: it parses untrusted bytes in C++, and a process can load one
// build of the library only.
//
// [New] is the parent's side. [Main] is the child's, for the hidden command `mlpromote
// driver onnxruntime`; it loads the shared library of the install, the same file that
// the Python driver loads. Without cgo it answers unavailable.
//
// Verbs: probe says the version and what models take and give; compile writes the
// graph as ONNX Runtime optimizes it, which for one version, level and model are the
// same bytes every time; run runs engines on cases, as toolchain.RunOptions says.
package ort

// Command serve is a small model server: it answers requests for one ONNX model by the Open Inference Protocol, by the
// REST API of TensorFlow Serving, and as plain JSON. README.md has its flags and limits.
package main

// Package format checks untrusted model files.
//
// A model file comes from another machine, and some model formats are programs: a Python pickle
// runs code when it is loaded, and a compiled plan is native code. So a file is checked by its
// bytes, never by its name, and against a list of allowed kinds, not of forbidden ones:
//
//   - [Sniff] recognizes the kind of the bytes, and finds pickles also inside archives
//     and compressed streams;
//   - [Check] lets a file pass only as the one [Kind] that the caller expects;
//   - [onnx.Read] walks an ONNX model on the wire without loading its tensors,
//     and returns its inputs, outputs, operators and references;
//   - [onnx.CheckExternalData] keeps the files that a model refers to in its folder.
//
// This package never executes, imports or maps a file. [bound.Limits] bound the bytes, depth and
// memory of reading. A check is valid for the bytes at that moment: code that uses the file
// later must use the same bytes, for example by their digest.
package format

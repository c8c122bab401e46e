// Package format checks untrusted model files.
//
// A model file comes from another machine, and some model formats are
// programs: a Python pickle runs whatever it carries when it is loaded, and a
// compiled plan is native code. So a file is judged by its bytes, never by its
// name, and from a list of what is allowed, never of what is forbidden:
//
//   - [Sniff] says what the bytes are, and finds pickles also inside archives
//     and compressed streams;
//   - [Check] lets a file pass only as the one [Kind] that the caller expects;
//   - [ReadONNX] walks an ONNX model on the wire without loading its tensors,
//     and says what it takes, gives, uses and refers to;
//   - [CheckExternalData] keeps the files that a model refers to in its folder.
//
// Nothing here executes, imports or maps anything; reading is bounded in bytes,
// depth and memory by [Limits]. The check looks at a file at one instant: whoever
// uses the file later must use the same bytes, which content addresses ensure.
package format

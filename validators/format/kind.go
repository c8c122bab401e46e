package format

// Kind classifies a file by its bytes. The zero Kind is Unknown, which is always refused.
type Kind int

// The kinds that Sniff distinguishes.
const (
	Unknown      Kind = iota // another format, or a file that cannot be inspected
	Empty                    // 0 bytes
	ONNX                     // a protobuf ModelProto
	Pickle                   // a Python pickle, of any protocol, bare or compressed (joblib, gzip, zlib, bzip2)
	PickleZip                // a zip archive with a pickle in it: torch .pt and .pth, npz with object arrays
	NumpyObject              // an .npy array of Python objects, which are a pickle
	Zip                      // another zip archive, whose entries were all inspected
	Skops                    // a scikit-learn model saved by skops, whose schema may name types to import
	Compressed               // a compressed stream that does not begin with a pickle
	Safetensors              // tensors with a JSON header
	Numpy                    // an .npy array of plain numbers or strings
	HDF5                     // a Keras .h5 model or weights; layers may carry Python bytecode
	GGUF                     // a llama.cpp model
	TFLite                   // a TensorFlow Lite flatbuffer
	ORT                      // an ONNX Runtime flatbuffer
	TensorRT                 // a TensorRT plan, which holds GPU code and may hold host code
	SavedModel               // the graphs of a TensorFlow SavedModel, whose operators may read and write files
	NativeObject             // an executable or shared object: ELF, PE or Mach-O
)

// risk says what loading a kind can do.
type risk int

const (
	riskData   risk = iota // loading runs no code from the file
	riskCode               // it is or may be code; accepted only if a caller wants exactly this kind
	riskPickle             // loading runs code from the file; always refused
)

// kinds has all properties of the kinds.
var kinds = [...]struct {
	name, says string
	risk       risk
}{
	Unknown:      {"unknown", "in an unknown format", riskData},
	Empty:        {"empty", "empty", riskData},
	ONNX:         {"onnx", "an ONNX model", riskData},
	Pickle:       {"pickle", "a Python pickle", riskPickle},
	PickleZip:    {"pickle-zip", "a zip archive with a Python pickle in it", riskPickle},
	NumpyObject:  {"npy-object", "a numpy array of Python objects, which are pickled", riskPickle},
	Zip:          {"zip", "a zip archive", riskData},
	Skops:        {"skops", "a skops archive of scikit-learn", riskCode},
	Compressed:   {"compressed", "a compressed stream", riskData},
	Safetensors:  {"safetensors", "a safetensors file", riskData},
	Numpy:        {"npy", "a numpy array", riskData},
	HDF5:         {"hdf5", "an HDF5 file, which may hold Keras layers with Python bytecode", riskCode},
	GGUF:         {"gguf", "a GGUF model", riskData},
	TFLite:       {"tflite", "a TensorFlow Lite model", riskData},
	ORT:          {"ort", "an ONNX Runtime flatbuffer", riskData},
	TensorRT:     {"tensorrt", "a TensorRT plan, which is compiled code", riskCode},
	SavedModel:   {"savedmodel", "the graph of a TensorFlow SavedModel", riskCode},
	NativeObject: {"native-object", "an executable or shared object", riskCode},
}

// row returns k's entry in the table, or that of Unknown for an invalid value.
func (k Kind) row() int {
	if k < 0 || int(k) >= len(kinds) {
		return int(Unknown)
	}
	return int(k)
}

// String returns a short stable word for k, such as "onnx" or "pickle-zip".
func (k Kind) String() string { return kinds[k.row()].name }

// Describe describes k for messages, as the end of "its bytes are ...".
func (k Kind) Describe() string { return kinds[k.row()].says }

// CarriesCode reports whether loading a file of kind k may run code from the file. Pickles are
// always refused, the other such kinds unless the caller wants exactly that kind.
func (k Kind) CarriesCode() bool { return kinds[k.row()].risk != riskData }

// pickled reports whether k is or contains a pickle.
func (k Kind) pickled() bool { return kinds[k.row()].risk == riskPickle }

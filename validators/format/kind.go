package format

// Kind says what a file is, by its bytes. The zero Kind is Unknown, which
// passes no check.
type Kind int

// The kinds that Sniff tells apart.
const (
	Unknown      Kind = iota // none of the kinds below, or not to be looked into
	Empty                    // no bytes at all
	ONNX                     // a protobuf ModelProto
	Pickle                   // a Python pickle, of any protocol, bare or compressed (joblib, gzip, zlib, bzip2)
	PickleZip                // a zip archive with a pickle in it: torch .pt and .pth, npz with object arrays
	NumpyObject              // an .npy array of Python objects, which are a pickle
	Zip                      // another zip archive, every entry of which was looked at
	Skops                    // a scikit-learn model saved by skops, whose schema may name types to import
	Compressed               // a compressed stream that does not begin a pickle
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

// risk is what loading a kind can do.
type risk int

const (
	riskData   risk = iota // reading it runs nothing that it carries
	riskCode               // it is or may be code, and a caller may ask for it by name
	riskPickle             // loading runs what it carries; it is always refused
)

// kinds is the one table of what is known about each kind.
var kinds = [...]struct {
	name, says string
	risk       risk
}{
	Unknown:      {"unknown", "in no format that is known here", riskData},
	Empty:        {"empty", "no bytes at all", riskData},
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

// row is k's entry in the table, that of Unknown for a value outside it.
func (k Kind) row() int {
	if k < 0 || int(k) >= len(kinds) {
		return int(Unknown)
	}
	return int(k)
}

// String is a short stable word for k, such as "onnx" or "pickle-zip".
func (k Kind) String() string { return kinds[k.row()].name }

// Describe says for people what k is, to follow "its bytes are".
func (k Kind) Describe() string { return kinds[k.row()].says }

// CarriesCode reports whether loading a file of kind k may run something that
// the file carries. Of such files, pickles pass no check at all, and the others
// only one that asks for this very kind.
func (k Kind) CarriesCode() bool { return kinds[k.row()].risk != riskData }

// pickled reports whether k is or contains a pickle.
func (k Kind) pickled() bool { return kinds[k.row()].risk == riskPickle }

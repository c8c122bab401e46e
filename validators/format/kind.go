package format

// Kind classifies a file by its bytes. The zero Kind is Unknown, which is always refused.
type Kind int

// The kinds that Sniff distinguishes.
const (
	Unknown       Kind = iota // another format, or a file that cannot be inspected
	Empty                     // 0 bytes
	ONNX                      // a protobuf ModelProto
	Pickle                    // a Python pickle, of any protocol, bare or compressed (joblib, gzip, zlib, bzip2)
	PickleZip                 // a zip archive with a pickle in it: torch .pt and .pth, npz with object arrays
	PickleTar                 // a tar archive with a pickle in it: NeMo's .nemo, old torch
	NumpyObject               // an .npy array of Python objects, which are a pickle
	Zip                       // another zip archive, with all entries inspected
	Tar                       // another tar archive, with all entries inspected
	Keras                     // a Keras model or its architecture, with a layer that is Python code
	CodeArchive               // an archive with a file in it that runs code when it is loaded
	NativeArchive             // an archive with native code in it, such as a package of AOTInductor
	Skops                     // a scikit-learn model saved by skops; its schema may name types to import
	Compressed                // a compressed stream, which was inspected too
	Safetensors               // tensors with a JSON header
	Numpy                     // an .npy array of plain numbers or strings
	HDF5                      // a Keras .h5 model or weights; layers may carry Python bytecode
	GGUF                      // a llama.cpp model
	TFLite                    // a TensorFlow Lite flatbuffer
	ORT                       // an ONNX Runtime flatbuffer
	TensorRT                  // a TensorRT plan, which holds GPU code and may hold host code
	SavedModel                // the graphs of a TensorFlow SavedModel; operators may read and write files
	IREE                      // an IREE module, which holds native code
	XGBoost                   // boosted trees, as XGBoost saves them: JSON, or the same as UBJSON
	LightGBM                  // boosted trees, as LightGBM saves them: text
	PMML                      // a model in the Predictive Model Markup Language: XML
	KerasArchive              // a .keras archive; only CheckKeras accepts it, Sniff returns CodeArchive or Keras
	JAXExport                 // a program of JAX as StableHLO, which jax.export wrote
	NativeObject              // an executable, a library or an object file: ELF, PE, Mach-O, LLVM bitcode, GPU code
)

// risk says what loading a kind can do.
type risk int

const (
	riskData   risk = iota // loading runs no code from the file
	riskNative             // it is native code by design; accepted where it is labelled so
	riskCode               // it is or may be code; accepted only if a caller wants exactly this kind
	riskPickle             // loading runs code from the file; always refused
)

// kinds has all properties of the kinds.
var kinds = [...]struct {
	name, says string
	risk       risk
}{
	Unknown:       {"unknown", "in an unknown format", riskData},
	Empty:         {"empty", "empty", riskData},
	ONNX:          {"onnx", "an ONNX model", riskData},
	Pickle:        {"pickle", "a Python pickle", riskPickle},
	PickleZip:     {"pickle-zip", "a zip archive with a Python pickle in it", riskPickle},
	PickleTar:     {"pickle-tar", "a tar archive with a Python pickle in it", riskPickle},
	NumpyObject:   {"npy-object", "a numpy array of Python objects, which are pickled", riskPickle},
	Zip:           {"zip", "a zip archive", riskData},
	Tar:           {"tar", "a tar archive", riskData},
	Keras:         {"keras", "a Keras model with Python code in it", riskCode},
	CodeArchive:   {"code-archive", "an archive with a file in it that runs code when it is loaded", riskCode},
	NativeArchive: {"native-archive", "an archive with native code in it", riskNative},
	Skops:         {"skops", "a skops archive of scikit-learn", riskCode},
	Compressed:    {"compressed", "a compressed stream", riskData},
	Safetensors:   {"safetensors", "a safetensors file", riskData},
	Numpy:         {"npy", "a numpy array", riskData},
	HDF5:          {"hdf5", "an HDF5 file, which may hold Keras layers with Python bytecode", riskCode},
	GGUF:          {"gguf", "a GGUF model", riskData},
	TFLite:        {"tflite", "a TensorFlow Lite model", riskData},
	ORT:           {"ort", "an ONNX Runtime flatbuffer", riskData},
	TensorRT:      {"tensorrt", "a TensorRT plan, which is compiled code", riskNative},
	SavedModel:    {"savedmodel", "the graph of a TensorFlow SavedModel", riskCode},
	IREE:          {"iree", "an IREE module, which is compiled code", riskNative},
	XGBoost:       {"xgboost", "an XGBoost model", riskData},
	LightGBM:      {"lightgbm", "a LightGBM model", riskData},
	PMML:          {"pmml", "a PMML document", riskData},
	KerasArchive:  {"keras-archive", "a .keras archive of Keras 3", riskCode},
	JAXExport:     {"jax", "a program that jax.export wrote", riskData},
	NativeObject:  {"native-object", "an executable or shared object", riskNative},
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

// native reports whether k is native code by design, which an engine may be if it says so.
func (k Kind) native() bool { return kinds[k.row()].risk == riskNative }

// pickled reports whether k is or contains a pickle.
func (k Kind) pickled() bool { return kinds[k.row()].risk == riskPickle }

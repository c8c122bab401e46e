package spec

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/strictyaml"
)

// Path is a path in a spec, relative to the folder of the spec, with '/'. Only [Spec.Files]
// may open it. The zero Path names no file.
type Path struct{ Written string }

// DecodeYAML reads the written path.
func (p *Path) DecodeYAML(n *strictyaml.Node) {
	n.Decode(&p.Written)
	if n.Kind() == strictyaml.Scalar && p.Written == "" {
		n.Problemf("the path is empty: want a path relative to the folder of the spec")
	}
}

// The formats of a source. All but ONNX are imported: turned into ONNX before anything
// else, and the reference is what their own framework predicts.
const (
	FormatONNX   = "onnx"
	FormatSkops  = "skops"  // of scikit-learn, by skops
	FormatPickle = "pickle" // of scikit-learn, by pickle or joblib; only with Trust.Pickle
	// FormatSafetensors is weights by name, and Architecture says what they are weights of.
	FormatSafetensors = "safetensors"
	FormatTFLite      = "tflite" // a flatbuffer of TensorFlow Lite
	// FormatSavedModel is a folder that TensorFlow saved.
	FormatSavedModel = "savedmodel"
	FormatXGBoost    = "xgboost"  // what Booster.save_model writes: .json or .ubj
	FormatLightGBM   = "lightgbm" // what Booster.save_model writes: .txt
	FormatPMML       = "pmml"     // a document in the Predictive Model Markup Language
	FormatKeras      = "keras"    // a .keras archive of Keras 3
	FormatJAX        = "jax"      // a program that jax.export wrote
	// FormatTorchExport is a program that torch.export saved, in a .pt2 archive; only with Trust.Pickle.
	FormatTorchExport = "torch-export"
	// FormatTorchScript is a module that torch.jit.save wrote; only with Trust.Pickle and Inputs.
	FormatTorchScript = "torchscript"
	// FormatHuggingFace is a folder that save_pretrained of transformers wrote: configuration, weights as safetensors, tokenizer.
	FormatHuggingFace = "huggingface"
	FormatGGUF        = "gguf" // a language model of llama.cpp
)

// Formats lists the formats of sources.
func Formats() []string {
	return []string{FormatONNX, FormatSkops, FormatPickle, FormatSafetensors, FormatTFLite, FormatSavedModel, FormatXGBoost, FormatLightGBM,
		FormatPMML, FormatKeras, FormatJAX, FormatTorchExport, FormatTorchScript, FormatHuggingFace, FormatGGUF}
}

// Source is the model to build from. A path alone is one in ONNX.
type Source struct {
	Path     Path   `yaml:"path,required" doc:"The model's file; of savedmodel and huggingface, its folder"`
	Format   string `yaml:"format" doc:"Format of the model" enum:"onnx,skops,pickle,safetensors,tflite,savedmodel,xgboost,lightgbm,pmml,keras,jax,torch-export,torchscript,huggingface,gguf"`
	Simplify bool   `yaml:"simplify" doc:"For onnx: fold constants and drop what has no effect; engines are still compared with the model as it is"`
	// Architecture is nil for every format but safetensors.
	Architecture *Architecture `yaml:"architecture" doc:"For safetensors: the network that the weights belong to"`
	// Inputs are empty for every format but torchscript.
	Inputs []SourceInput `yaml:"inputs" doc:"For torchscript, whose files do not say it: the inputs, in the order of the module's arguments"`
	// Operators are libraries, which is native code that runs wherever the engine runs.
	Operators []Path `yaml:"operators" doc:"For onnx: libraries of operators that the model needs, built for the target (ONNX Runtime's custom operators); they become files of the engine, which then carries native code"`
	// Origin is nil for a file that was always here.
	Origin *Origin `yaml:"origin" doc:"From which server init fetched the model; build refuses other bytes, and the provenance names it"`
	Trust  Trust   `yaml:"trust" doc:"For skops, pickle, torch-export and torchscript: what of the file may be loaded although it is not known to be safe"`
}

// Origin is the place that the files of a source were fetched from. The zero Origin is invalid.
type Origin struct {
	URI    string `yaml:"uri,required" doc:"The model on that server: mlflow:models:/NAME/VERSION or mlflow:runs:/RUN/PATH"`
	Server string `yaml:"server,required" doc:"Address of the server"`
	Run    string `yaml:"run" doc:"The run that logged the model"`
	Digest string `yaml:"digest,required" doc:"SHA-256 of the model's file as sha256:HEX; of several files, SHA-256 of the lines that sha256sum prints for them, sorted by name"`
}

// PinOf returns the digest for [Origin] of files by name. Names are relative to the folder that has the model, with '/'.
func PinOf(files map[string]registry.Digest) registry.Digest {
	list := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if len(files) == 1 {
			return files[name]
		}
		fmt.Fprintf(list, "%s  %s\n", files[name].Encoded(), name)
	}
	return registry.Digest(fmt.Sprintf("sha256:%x", list.Sum(nil)))
}

// The kinds of networks whose weights can be a source.
const (
	ArchitectureMLP = "mlp" // dense layers
	ArchitectureCNN = "cnn" // convolutions and pools, then dense layers
	// ArchitectureEncoder is a transformer encoder over tokens.
	ArchitectureEncoder = "encoder"
)

// InFolder reports whether a source of the format is a folder, not a file.
func InFolder(format string) bool { return format == FormatSavedModel || format == FormatHuggingFace }

// TakesAnyNumbers reports whether the framework of a format takes floats of any precision, and integers, if the model says float32. The
// frameworks of other formats refuse them, or round them to float32 as their first step.
func TakesAnyNumbers(format string) bool {
	switch format {
	case FormatSkops, FormatPickle, FormatSafetensors, FormatXGBoost, FormatLightGBM, FormatPMML:
		return true
	}
	return false
}

// Architecture is the network that weights belong to: layers, one after the other.
type Architecture struct {
	Kind   string   `yaml:"kind,required" doc:"mlp, cnn or encoder" enum:"mlp,cnn,encoder"`
	Input  []int64  `yaml:"input,required" doc:"Shape of one case: [features], [channels, height, width], or [tokens] of an encoder"`
	Layers []string `yaml:"layers,required" doc:"In order: relu, tanh, sigmoid, softmax, for cnn also maxpool, avgpool, flatten; and NAME of NAME.weight and NAME.bias; for encoder first the embedding, then positions, names of blocks, of norms and of dense layers, gelu, mean"`
	Heads  int      `yaml:"heads" doc:"For encoder: heads of attention"`
	Norm   string   `yaml:"norm" doc:"For encoder: whether blocks normalize after their parts are added, or before; after where nothing is said" enum:"after,before"`
}

// Trust is what a person vouches for in a file that can hold code.
type Trust struct {
	Types  []string `yaml:"types" doc:"Types in a skops file, as MODULE.NAME"`
	Pickle bool     `yaml:"pickle" doc:"The file is or holds a pickle, which can run code when it is loaded, and its origin is known"`
}

// DecodeYAML reads a path, or the mapping.
func (s *Source) DecodeYAML(n *strictyaml.Node) {
	s.Format = FormatONNX
	type plain Source
	n.DecodeEither(&s.Path, (*plain)(s))
}

// Folder is a folder of tensors. A path alone will do.
type Folder struct {
	Path Path `yaml:"path,required" doc:"The folder"`
}

// DecodeYAML reads a path, or the mapping.
func (f *Folder) DecodeYAML(n *strictyaml.Node) {
	type plain Folder
	n.DecodeEither(&f.Path, (*plain)(f))
}

// Cases are the inputs that engines are judged on: those in a folder, or Generate
// random ones. Exactly one of Path and Generate is set.
type Cases struct {
	Path     Path               `yaml:"path" doc:"Folder of recorded cases"`
	Labels   string             `yaml:"labels" doc:"Name of the tensor that holds the right answers"`
	Compare  map[string]Compare `yaml:"compare" doc:"Per output: which elements count"`
	Generate int                `yaml:"generate" doc:"How many cases to generate at random"`
	Seed     int64              `yaml:"seed" doc:"Seed of the generated cases"`
	Inputs   map[string]Draw    `yaml:"inputs" doc:"Per input: what the values of generated cases are drawn from"`
}

// Draw says what the values of a generated input are drawn from: all between Min and Max, which
// are both set or neither, or some of Values.
type Draw struct {
	Min    *float64  `yaml:"min" doc:"Smallest value; needs max"`
	Max    *float64  `yaml:"max" doc:"Largest value; needs min"`
	Values []float64 `yaml:"values" doc:"The only values, instead of min and max"`
}

// Compare says which elements of an output count.
type Compare struct {
	Where string `yaml:"where,required" doc:"Name of the input that is not 0 where elements count; its dimensions are the output's first"`
}

// DecodeYAML reads a path, or the mapping.
func (c *Cases) DecodeYAML(n *strictyaml.Node) {
	type plain Cases
	n.DecodeEither(&c.Path, (*plain)(c))
}

// Origin says where the cases come from: artifact.OriginRecorded or OriginGenerated.
func (c Cases) Origin() string {
	if c.Generate > 0 {
		return artifact.OriginGenerated
	}
	return artifact.OriginRecorded
}

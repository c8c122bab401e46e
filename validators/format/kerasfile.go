package format

import (
	"archive/zip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format/bound"
)

// The entries of a .keras archive (keras.src.saving.saving_lib).
const (
	kerasConfig, kerasMetadata, kerasWeights = "config.json", "metadata.json", "model.weights.h5"
	// maxKerasConfig limits the configuration in bytes.
	maxKerasConfig = 32 << 20
	maxKerasDepth  = 256
)

// kerasModules are the modules whose classes a configuration may name; nil allows all that a module
// has but kerasReaching. Any module can be named in a configuration, and Keras imports it.
var kerasModules = map[string][]string{
	"keras":                       {"DTypePolicy", "FloatDTypePolicy", "Sequential", "Functional", "Model"},
	"keras.src.models.functional": {"Functional"},
	"keras.src.models.sequential": {"Sequential"},
	"keras.models":                {"Sequential", "Functional", "Model"},
	"keras.layers":                nil,
	"keras.initializers":          nil,
	"keras.regularizers":          nil,
	"keras.constraints":           nil,
	"keras.activations":           nil,
	"keras.dtype_policies":        nil,
	"keras.optimizers":            nil,
	"keras.optimizers.schedules":  nil,
	"keras.losses":                nil,
	"keras.metrics":               nil,
}

// kerasReaching are classes of Keras that run code from the file, or load other files.
var kerasReaching = []string{"Lambda", "TFSMLayer", "TorchModuleWrapper", "JaxLayer", "FlaxLayer", "__lambda__"}

// kerasFunctions are functions that a configuration may name: activations.
var kerasFunctions = []string{
	"celu", "elu", "exponential", "gelu", "glu", "hard_shrink", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "leaky_relu", "linear",
	"log_sigmoid", "log_softmax", "mish", "relu", "relu6", "selu", "sigmoid", "silu", "soft_shrink", "softmax", "softplus", "softsign",
	"sparse_plus", "sparse_sigmoid", "sparsemax", "squareplus", "swish", "tanh", "tanh_shrink", "threshold",
}

// kerasValues are the words in place of a class that stand for plain values.
var kerasValues = []string{"__keras_tensor__", "__tensor__", "__numpy__", "__ellipsis__", "__tuple__", "__slice__", "__bytes__", "__complex__"}

// exportKeras is the way out for a model with code of its own.
const exportKeras = "build the model of Keras' own layers, or export it: model.export(\"folder\") writes a SavedModel, which can be a source"

// IsKeras reports whether the size bytes of r may be a .keras archive, which [CheckKeras] checks.
func IsKeras(r io.ReaderAt, size int64) bool {
	archive, err := bound.Zip(r, size)
	if err != nil {
		return false
	}
	has := func(name string) bool {
		return slices.ContainsFunc(archive.File, func(f *zip.File) bool { return f.Name == name })
	}
	return has(kerasConfig) && has(kerasMetadata) && has(kerasWeights)
}

// CheckKeras returns nil if f is a .keras archive with a configuration, metadata and weights, and
// nothing else, and a configuration that names only classes of Keras itself. Errors: CodeUnsafe
// for a Lambda layer, a class of one's own, or a class that reaches for other files; CodeInvalid
// for another file, or one beyond lim.
func CheckKeras(f *os.File, lim bound.Limits) error {
	size, found, err := look(f, lim)
	if err != nil {
		return err
	}
	if found.kind == Keras {
		return registry.WithHint(registry.Errorf(registry.CodeUnsafe, "%s: its bytes are %s (%s), which runs when the model is loaded",
			f.Name(), found.kind.Describe(), found.detail), exportKeras)
	}
	if found.kind != CodeArchive || !IsKeras(f, size) {
		return refuse(f.Name(), found, KerasArchive)
	}
	config, err := kerasConfigOf(f, size)
	if err != nil {
		return bound.InFile(f.Name(), err)
	}
	if class := foreignClass(config, 0); class != "" {
		return registry.WithHint(registry.Errorf(registry.CodeUnsafe, "%s: its configuration has %s, whose code is loaded with the model",
			f.Name(), class), exportKeras)
	}
	return nil
}

// kerasConfigOf reads the configuration of an archive that has nothing but what Keras writes.
func kerasConfigOf(r io.ReaderAt, size int64) (any, error) {
	archive, err := zip.NewReader(&bound.Budget{R: r, Left: bound.ZipBytes}, size)
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "the archive cannot be read: %w", err)
	}
	var names []string
	for _, entry := range archive.File {
		names = append(names, entry.Name)
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{kerasConfig, kerasMetadata, kerasWeights}) {
		return nil, registry.Errorf(registry.CodeUnsafe, "its entries are %s: want %s, %s and %s, as a model without assets has them",
			strings.Join(names[:min(len(names), 8)], ", "), kerasConfig, kerasMetadata, kerasWeights)
	}
	if why := zipProblem(archive, size); why != "" { // which weights in HDF5 have outranked
		return nil, registry.Errorf(registry.CodeUnsafe, "it is a zip archive %s: save the model again with Keras", why)
	}
	body, err := archive.Open(kerasConfig)
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "entry %s: %w", kerasConfig, err)
	}
	defer func() { _ = body.Close() }() // only read from
	text, err := io.ReadAll(io.LimitReader(body, maxKerasConfig+1))
	if err == nil && len(text) > maxKerasConfig {
		err = fmt.Errorf("it has more than %d bytes", maxKerasConfig)
	}
	var config any
	if err == nil {
		err = json.Unmarshal(text, &config)
	}
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "entry %s: %w", kerasConfig, err)
	}
	return config, nil
}

// foreignClass describes the first class in a configuration that is not one of Keras' own, or is
// one that loads code; "" if there is none.
func foreignClass(value any, depth int) string {
	if depth > maxKerasDepth {
		return "values nested too deeply to look into"
	}
	switch v := value.(type) {
	case []any:
		for _, element := range v {
			if class := foreignClass(element, depth+1); class != "" {
				return class
			}
		}
	case map[string]any:
		if class := classProblem(v); class != "" {
			return class
		}
		for _, element := range v {
			if class := foreignClass(element, depth+1); class != "" {
				return class
			}
		}
	}
	return ""
}

// classProblem looks at an object of a configuration that names a class.
func classProblem(object map[string]any) string {
	named, ok := object["class_name"]
	if !ok {
		return ""
	}
	class, _ := named.(string)
	module, _ := object["module"].(string)
	switch {
	case class == "" || slices.Contains(kerasReaching, class):
		return fmt.Sprintf("the class %v", named)
	case slices.Contains(kerasValues, class) && object["module"] == nil:
		return ""
	case strings.HasPrefix(class, "__"): // what stands for a value, or for a type by another key
		return fmt.Sprintf("the class %s of module %s", class, module)
	case class == "function" && module == "builtins": // a function of Keras by its name
		if name, _ := object["config"].(string); !slices.Contains(kerasFunctions, name) {
			return fmt.Sprintf("the function %v", object["config"])
		}
		return ""
	}
	if class == "function" { // of a module by its name, such as one that reads a configuration
		return fmt.Sprintf("the class function of module %s", module)
	}
	classes, known := kerasModules[module]
	if module == "" {
		return fmt.Sprintf("the class %s, which Keras does not have", class)
	}
	if !known || classes != nil && !slices.Contains(classes, class) {
		return fmt.Sprintf("the class %s of module %s", class, module)
	}
	return ""
}

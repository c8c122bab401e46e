package mlflow

import (
	"path"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/strictyaml"
)

// description is the part of an MLmodel file that is used.
type description struct {
	flavors  map[string]map[string]string // values that are text, by flavour and key
	example  example
	hasInput bool // it has a signature
}

// example is an input that was logged with the model.
type example struct {
	path   string // of the artifact; empty for none
	kind   string // "dataframe", "ndarray" and others
	orient string // of a dataframe
}

// raw keeps a node as it was read: MLflow's files have keys that are none of ours.
type raw struct{ node *strictyaml.Node }

// DecodeYAML keeps the node.
func (r *raw) DecodeYAML(n *strictyaml.Node) { r.node = n }

// readDescription reads an MLmodel file. Errors: CodeInvalid.
func readDescription(data []byte) (description, error) {
	if len(data) > strictyaml.MaxBytes {
		return description{}, registry.WithHint(registry.Errorf(registry.CodeInvalid, "MLmodel has more than %d bytes", strictyaml.MaxBytes),
			"download the model with mlflow artifacts download, and hand in its file; a signature of very many columns takes the most bytes")
	}
	var top raw
	if _, err := strictyaml.Decode("MLmodel", data, &top); err != nil {
		return description{}, err
	}
	d := description{flavors: make(map[string]map[string]string)}
	for _, flavor := range child(top.node, "flavors").Entries() {
		values := make(map[string]string)
		for _, e := range flavor.Value.Entries() {
			if e.Value.Kind() == strictyaml.Scalar {
				values[e.Key] = e.Value.Text()
			}
		}
		d.flavors[flavor.Key] = values
	}
	if len(d.flavors) == 0 {
		return description{}, registry.Errorf(registry.CodeInvalid, "MLmodel names no flavors, so it is no model of MLflow")
	}
	info := child(top.node, "saved_input_example_info")
	d.example = example{path: child(info, "artifact_path").Text(), kind: child(info, "type").Text(), orient: child(info, "pandas_orient").Text()}
	d.hasInput = len(child(top.node, "signature").Entries()) > 0
	return d, nil
}

// child is the value of a key; an empty node if there is none.
func child(n *strictyaml.Node, key string) *strictyaml.Node {
	for _, e := range n.Entries() {
		if e.Key == key {
			return e.Value
		}
	}
	return new(strictyaml.Node)
}

// flavor is a row for a kind of model that MLflow logs: which of its artifacts is the model.
type flavor struct {
	name string
	// keys of the flavour that name the model's file or folder, the first that it has.
	keys []string
	// within lists names in that folder, in order of preference; empty if the key names the model itself.
	within []string
	folder string            // name of a folder that is the model: a SavedModel; empty for none
	ends   map[string]string // what the file here is called after the name of the model, by the end of its name there
	log    string            // what to log instead of a file that cannot be taken
}

// flavors are the models that can be fetched. The first that a model has is taken.
func flavors() []flavor {
	return []flavor{
		{name: "onnx", keys: []string{"data"}, ends: map[string]string{".onnx": ".onnx"}, log: `mlflow.onnx.log_model(onnx_model, name="model")`},
		{name: "sklearn", keys: []string{"pickled_model"}, ends: map[string]string{".skops": ".skops"},
			log: `mlflow.sklearn.log_model(model, name="model", serialization_format="skops")`},
		{name: "xgboost", keys: []string{"data"}, ends: map[string]string{".ubj": ".ubj", ".json": ".json", ".xgb": ".ubj"},
			log: `mlflow.xgboost.log_model(model, name="model", model_format="ubj")`},
		{name: "lightgbm", keys: []string{"data"}, ends: map[string]string{".lgb": ".txt", ".txt": ".txt"},
			log: `mlflow.lightgbm.log_model(model.booster_, name="model")`},
		{name: "keras", keys: []string{"data"}, within: []string{"model.keras"}, folder: "model", ends: map[string]string{".keras": ".keras"},
			log: `mlflow.keras.log_model(model, name="model")`},
		{name: "tensorflow", keys: []string{"data", "saved_model_dir"}, within: []string{"model.keras"}, folder: "model", ends: map[string]string{".keras": ".keras"},
			log: `mlflow.tensorflow.log_model(model, name="model"), with Keras 3 or a tf.Module`},
		{name: "pytorch", keys: []string{"model_data"}, within: []string{"model.pt2"}, ends: map[string]string{".pt2": ".pt2"},
			log: `mlflow.pytorch.log_model(model, name="model", input_example=x, serialization_format="pt2"), or mlflow.onnx.log_model of its export`},
	}
}

// Names of flavours that [Fetch] takes.
func flavorNames() string {
	var names []string
	for _, f := range flavors() {
		names = append(names, f.name)
	}
	return strings.Join(names, ", ")
}

// choice is a flavour of a model, with the place of its artifact.
type choice struct {
	flavor
	at string // the file, or the folder that has it
}

// choose picks the flavour of a model. Errors: CodeInvalid, with what to log instead.
func (d description) choose() (choice, error) {
	for _, f := range flavors() {
		values, ok := d.flavors[f.name]
		if !ok {
			continue
		}
		for _, key := range f.keys {
			if at := values[key]; at != "" {
				if !localPath(at) {
					return choice{}, registry.Errorf(registry.CodeInvalid, "MLmodel: the path %.80q of flavor %s leads out of the model", at, f.name)
				}
				return choice{f, at}, nil
			}
		}
		return choice{}, registry.WithHint(registry.Errorf(registry.CodeInvalid, "MLmodel: flavor %s names no file", f.name), "log the model again: %s", f.log)
	}
	others := slices.DeleteFunc(registry.SortedKeys(d.flavors), func(name string) bool { return name == "python_function" })
	text := "the model is Python code alone (python_function)"
	if len(others) > 0 {
		text = "the model has the flavor " + registry.PlainText(strings.Join(others[:min(len(others), 3)], ", "))
	}
	return choice{}, registry.WithHint(registry.Errorf(registry.CodeInvalid, "%s: want one of %s", text, flavorNames()),
		"export the model to ONNX and log that: mlflow.onnx.log_model(onnx_model, name=\"model\")")
}

// end is the end of the file's name here. Errors: CodeUnsafe for pickles, CodeInvalid for other files, both with what to log instead.
func (c choice) end(name string) (string, error) {
	if end, ok := c.ends[path.Ext(name)]; ok {
		return end, nil
	}
	if slices.Contains([]string{".pkl", ".pickle", ".pth", ".pt", ".joblib", ".cloudpickle"}, path.Ext(name)) {
		return "", registry.WithHint(registry.Errorf(registry.CodeUnsafe, "%s: flavor %s has a pickle, which can run code when it is loaded", name, c.name), "log the model without one: %s", c.log)
	}
	return "", registry.WithHint(registry.Errorf(registry.CodeInvalid, "%s: flavor %s has a file of a kind that is not read", name, c.name), "log the model again: %s", c.log)
}

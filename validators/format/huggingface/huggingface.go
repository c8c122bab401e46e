// Package huggingface checks folders of models that save_pretrained of transformers wrote.
package huggingface

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format"
	"mlpromote.dev/mlpromote/validators/format/bound"
)

// Files of a folder that save_pretrained of transformers writes (huggingface.co/docs/transformers).
const (
	configFile  = "config.json"
	weightsFile = "model.safetensors"
	indexFile   = "model.safetensors.index.json"
	// maxFiles is the maximum number of files of a model.
	maxFiles = 1024
	// maxJSON limits the configuration and the index of the weights in bytes each.
	maxJSON = 8 << 20
)

// dataFiles are files that belong to the model beside its configuration and weights: how text becomes tokens,
// and how images and sound become tensors.
var dataFiles = []string{
	"added_tokens.json", "generation_config.json", "merges.txt", "preprocessor_config.json", "processor_config.json", "sentencepiece.bpe.model",
	"special_tokens_map.json", "spiece.model", "tokenizer.json", "tokenizer.model", "tokenizer_config.json", "vocab.json", "vocab.txt",
}

// IsTokenizer reports whether a file in a folder of transformers defines how text becomes tokens, or images and sound tensors.
func IsTokenizer(name string) bool {
	return slices.Contains(dataFiles, name) && name != "generation_config.json"
}

// saveSafely is the way out for weights in a pickle.
const saveSafely = `save the model where it can be loaded: model.save_pretrained("folder") writes model.safetensors`

// Is reports whether an open folder has the configuration of a model of transformers.
func Is(root *os.Root) bool {
	config, err := readConfig(root)
	return err == nil && (config.ModelType != "" || len(config.Architectures) > 0)
}

// model is what decides of config.json. AutoMap names classes in Python files of the folder.
type model struct {
	Architectures []string
	ModelType     string
	AutoMap       json.RawMessage
}

// UnmarshalJSON reads the keys as Python does, letter by letter: encoding/json takes AUTO_MAP for auto_map, too.
func (m *model) UnmarshalJSON(text []byte) error {
	return unmarshalExactly(text, map[string]any{"architectures": &m.Architectures, "model_type": &m.ModelType, "auto_map": &m.AutoMap})
}

// unmarshalExactly reads the values of some keys of a JSON object.
func unmarshalExactly(text []byte, into map[string]any) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return fmt.Errorf("it is %w", jsonWords(err))
	}
	for key, value := range into {
		if len(all[key]) == 0 {
			continue
		}
		if err := json.Unmarshal(all[key], value); err != nil {
			return fmt.Errorf("%s is %w", key, jsonWords(err))
		}
	}
	return nil
}

// jsonWords says what is wrong with JSON in the words of JSON, where encoding/json speaks of types of Go.
func jsonWords(err error) error {
	var mismatch *json.UnmarshalTypeError
	if !errors.As(err, &mismatch) {
		return err
	}
	found := map[string]string{"array": "a list", "object": "an object", "string": "a text", "bool": "true or false"}[mismatch.Value]
	if found == "" {
		found = "a number"
	}
	want := map[reflect.Kind]string{reflect.String: "a text", reflect.Slice: "a list", reflect.Map: "an object"}[mismatch.Type.Kind()]
	return fmt.Errorf("%s, want %s", found, want)
}

// Check checks an open folder that save_pretrained of transformers wrote. It returns the files that belong to the
// model, config.json first, with slashes. It ignores other files in the folder.
//
// Errors: [registry.CodeUnsafe] for a model with a network in Python code of its own, for weights that exist only as a
// pickle, and for a link or a special file; [registry.CodeInvalid] for another folder, or one beyond lim.
func Check(root *os.Root, lim bound.Limits) ([]string, error) {
	config, err := readConfig(root)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(root.Name(), configFile)
	switch {
	case len(config.AutoMap) > 0 && string(config.AutoMap) != "null":
		return nil, registry.WithHint(
			registry.Errorf(registry.CodeUnsafe, "%s: auto_map names Python code of the model's own, which runs when it is loaded", file),
			"export the model where it can be loaded: torch.onnx.export(model, args, \"model.onnx\")")
	case len(config.Architectures) != 1 || config.ModelType == "":
		return nil, registry.Errorf(registry.CodeInvalid,
			"%s: want model_type, and architectures with one name: save the model again with save_pretrained", file)
	}
	weights, err := weightsOf(root)
	if err != nil {
		return nil, err
	}
	names := append([]string{configFile}, weights...)
	for _, name := range dataFiles {
		if _, err := root.Lstat(name); err == nil {
			names = append(names, name)
		}
	}
	return names, checkFiles(root, names, lim)
}

// readConfig reads the configuration.
func readConfig(root *os.Root) (model, error) {
	var config model
	return config, readSmallJSON(root, configFile, &config)
}

// readSmallJSON reads a JSON file of an open folder.
func readSmallJSON(root *os.Root, name string, into any) error {
	file := filepath.Join(root.Name(), name)
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return registry.Errorf(registry.CodeInvalid, "%s cannot be read; check the path: %w", file, err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > maxJSON {
		return registry.Errorf(registry.CodeInvalid, "%s: want a regular file of at most %d MiB", file, maxJSON>>20)
	}
	content, err := io.ReadAll(io.LimitReader(f, maxJSON))
	if err == nil {
		err = json.Unmarshal(content, into)
	}
	if err != nil {
		return registry.Errorf(registry.CodeInvalid, "%s: want a JSON object as save_pretrained of transformers writes it: %w", file, err)
	}
	return nil
}

// weightsOf lists the files of the weights: one, or those that an index names.
func weightsOf(root *os.Root) ([]string, error) {
	if _, err := root.Lstat(weightsFile); err == nil {
		return []string{weightsFile}, nil
	}
	if _, err := root.Lstat(indexFile); err != nil {
		return nil, noWeights(root)
	}
	var index shardIndex
	if err := readSmallJSON(root, indexFile, &index); err != nil {
		return nil, err
	}
	names := []string{indexFile}
	for _, name := range index.WeightMap {
		if len(names) > maxFiles { // before a search in them takes long
			return nil, tooManyWeights(root)
		}
		if path.Base(name) != name || !strings.HasSuffix(name, ".safetensors") {
			return nil, registry.Errorf(registry.CodeUnsafe, "%s: it names %q, expected safetensors files beside it",
				filepath.Join(root.Name(), indexFile), name)
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names[1:])
	return names, nil
}

// shardIndex is the index of weights in several files.
type shardIndex struct{ WeightMap map[string]string }

// UnmarshalJSON reads it as Python does.
func (i *shardIndex) UnmarshalJSON(text []byte) error {
	return unmarshalExactly(text, map[string]any{"weight_map": &i.WeightMap})
}

func tooManyWeights(root *os.Root) error {
	return registry.Errorf(registry.CodeInvalid, "%s: its weights are in more than %d files", root.Name(), maxFiles)
}

// noWeights is the error for a folder without weights that can be read safely.
func noWeights(root *os.Root) error {
	pickles, err := fs.Glob(root.FS(), "pytorch_model*.bin")
	if err == nil && len(pickles) > 0 {
		return registry.WithHint(registry.Errorf(registry.CodeUnsafe, "%s: its weights are only in %s, a pickle, which can run code when it is loaded",
			root.Name(), pickles[0]), saveSafely)
	}
	return registry.WithHint(
		registry.Errorf(registry.CodeInvalid, "%s: neither %s nor %s is there", root.Name(), weightsFile, indexFile), saveSafely)
}

// checkFiles checks that weights are safetensors, and that all are regular files within the limits.
func checkFiles(root *os.Root, names []string, lim bound.Limits) error {
	left := lim.WithDefaults().MaxBytes
	if len(names) > maxFiles {
		return tooManyWeights(root)
	}
	for _, name := range names {
		file := filepath.Join(root.Name(), name)
		info, err := root.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return registry.Errorf(registry.CodeInvalid, "%s is not there, and %s names it", file, indexFile)
		case err != nil:
			return registry.Errorf(registry.CodeInvalid, "%s: %w", file, err)
		case !info.Mode().IsRegular():
			return registry.Errorf(registry.CodeUnsafe, "%s is not a regular file (%v); replace it with the data itself", file, info.Mode().Type())
		}
		if left -= info.Size(); left < 0 {
			return registry.Errorf(registry.CodeInvalid, "%s: with %s it has more bytes than a model may have", root.Name(), name)
		}
		if strings.HasSuffix(name, ".safetensors") {
			if err := checkIn(root, name, format.Safetensors, lim); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkIn does [CheckFile] for a file of an open folder.
func checkIn(root *os.Root, name string, want format.Kind, lim bound.Limits) error {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return registry.Errorf(registry.CodeInvalid, "%s: %w", filepath.Join(root.Name(), name), err)
	}
	defer f.Close()
	return format.CheckFile(f, want, lim)
}

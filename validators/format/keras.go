package format

import (
	"bytes"
	"encoding/json"
)

// kerasBytes limits how much of a Keras configuration is read.
const kerasBytes = 8 << 20

// kerasCode returns what in a JSON document is a layer of Python code, or empty. Keras
// deserializes such documents: config.json of a .keras archive, model_config of HDF5, and what
// to_json writes (keras.src.saving.serialization_lib: a Lambda layer, or a function as
// "__lambda__" with marshalled bytecode).
func kerasCode(head []byte, src *source) string {
	if trimmed := bytes.TrimLeft(head, " \t\r\n\ufeff"); len(trimmed) == 0 || trimmed[0] != '{' {
		return ""
	}
	text := src.head(kerasBytes)
	if !bytes.Contains(text, []byte("class_name")) {
		return ""
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	return kerasLayer(json.NewDecoder(bytes.NewReader(text)))
}

// kerasLayer reads tokens, and looks for the value of a key class_name.
func kerasLayer(tokens *json.Decoder) string {
	named := false
	for {
		token, err := tokens.Token()
		if err != nil {
			return ""
		}
		text, isText := token.(string)
		if named && isText {
			switch text {
			case "Lambda":
				return "a Lambda layer, whose function is Python bytecode"
			case "__lambda__":
				return "a lambda function as Python bytecode"
			}
		}
		named = isText && text == "class_name"
	}
}

// hdf5Detail says what the beginning of an HDF5 file gives away, for messages. HDF5 files are refused without it too.
func hdf5Detail(src *source) string {
	head := src.head(1 << 20)
	switch {
	case bytes.Contains(head, []byte(`"class_name": "Lambda"`)):
		return "its model_config has a Lambda layer"
	case bytes.Contains(head, []byte("__lambda__")):
		return "its model_config has a lambda function"
	}
	return ""
}

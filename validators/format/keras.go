package format

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"path"
)

// jsonSpace may stand before a JSON document, with the mark that Python's utf-8-sig skips.
const jsonSpace = " \t\r\n\ufeff"

// sniffKeras recognizes a JSON document with a layer of Python code. Keras deserializes such
// documents: config.json of a .keras archive, model_config of HDF5, and what to_json writes
// (keras.src.saving.serialization_lib: a Lambda layer, or a function as "__lambda__" with marshalled
// bytecode). What looks like Keras and is not at hand to its end is hidden.
func sniffKeras(head []byte, src *source) finding {
	if !startsJSON(head) {
		return finding{}
	}
	scan := scanKeras(src)
	switch {
	case scan.layer != "":
		return finding{kind: Keras, detail: scan.layer}
	case scan.cut && scan.keras:
		return finding{kind: Unknown, detail: "a Keras model that cannot be looked into to its end"}
	}
	return finding{}
}

// startsJSON reports whether head may be the beginning of a JSON object.
func startsJSON(head []byte) bool {
	trimmed := bytes.TrimLeft(head, jsonSpace)
	return len(trimmed) == 0 || trimmed[0] == '{'
}

// hiddenConfig reports whether the configuration in a .keras archive is not at hand to its end, or in
// UTF-16 or UTF-32, which Python's json reads too.
func hiddenConfig(name string, src *source) bool {
	if path.Base(name) != "config.json" || src.size == 0 {
		return false
	}
	head := src.head(2)
	wide := bytes.IndexByte(head, 0) >= 0 || head[0] >= 0xfe
	return wide || scanKeras(src).cut
}

// kerasScan is what was found in a JSON document: a layer of code, or at least that it looks like
// Keras; cut is true if its end is not at hand.
type kerasScan struct {
	layer      string
	keras, cut bool
}

// scanKeras reads the strings of a JSON document up to its end, for the value of a key class_name.
// It does not look at the rest of the grammar, so that it reads all documents that Python reads,
// also those with NaN. A control character ends it, because no JSON has one.
func scanKeras(src *source) kerasScan {
	var scan kerasScan
	text := bufio.NewReaderSize(io.NewSectionReader(src, 0, src.size), 1<<16)
	named := false // the last string was class_name, and only a colon has followed
	for at := int64(0); ; {
		c, err := text.ReadByte()
		if err != nil {
			scan.cut = at < src.size
			return scan
		}
		at++
		switch {
		case c == '"':
			word, n, err := jsonString(text)
			if at += n; err != nil {
				scan.cut = !errors.Is(err, errNoJSON) && at < src.size
				return scan
			}
			if scan.layer = kerasLayer(word); named && scan.layer != "" {
				return scan
			}
			scan.layer, named = "", word == "class_name"
			scan.keras = scan.keras || named
		case c == ':', c == ' ', c == '\t', c == '\n', c == '\r':
		case c < ' ':
			return scan
		default:
			named = false
		}
	}
}

// kerasLayer says what a class of Keras holds, if that is code.
func kerasLayer(class string) string {
	switch class {
	case "Lambda":
		return "a Lambda layer, with Python bytecode as function"
	case "__lambda__":
		return "a lambda function as Python bytecode"
	}
	return ""
}

var errNoJSON = errors.New("a control character in JSON")

// jsonString reads a string behind its first quote, and returns how many bytes it was. Of a long
// one, which is no name that is looked for, even if all its letters are escaped, it keeps nothing.
func jsonString(text io.ByteReader) (word string, n int64, err error) {
	const longest = 6 * len("__lambda__")
	raw, escaped, escapes := make([]byte, 0, longest+2), false, false
	for {
		c, err := text.ReadByte()
		if err != nil {
			return "", n, err
		}
		n++
		switch {
		case c < ' ':
			return "", n, errNoJSON
		case c == '"' && !escaped:
			return unescaped(raw, escapes), n, nil
		}
		escaped = c == '\\' && !escaped
		escapes = escapes || escaped
		if len(raw) <= longest {
			raw = append(raw, c)
		}
	}
}

// unescaped resolves the escapes of a string; of one that was cut it may return nothing.
func unescaped(raw []byte, escapes bool) string {
	if !escapes {
		return string(raw)
	}
	var word string
	if err := json.Unmarshal([]byte(`"`+string(raw)+`"`), &word); err != nil {
		return ""
	}
	return word
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

package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"unicode/utf8"
)

// deepestRead is how deep encoding/json reads.
const deepestRead = 10_000

// DecodeSigned decodes signed JSON into the struct that into points to. It is strict, so that
// all readers see the same document in the same bytes. The JSON must pass [CheckJSON]. Keys
// must be spelled as in the struct's tags: it refuses a key that differs only in case, which
// encoding/json would accept. It ignores other unknown keys. Types that decode themselves must
// check their own values.
func DecodeSigned(data []byte, into any) error {
	if err := checkJSON(data, reflect.TypeOf(into)); err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// CheckJSON checks that data is exactly one JSON object in UTF-8, that its nesting is limited,
// and that no object in it has a key twice.
func CheckJSON(data []byte) error { return checkJSON(data, nil) }

// checkJSON checks data, and the spelling of keys if into is not nil.
func checkJSON(data []byte, into reflect.Type) error {
	if !utf8.Valid(data) {
		return errors.New("it is not UTF-8")
	}
	if err := checkSyntax(data); err != nil {
		return err
	}
	w := signedWalker{data: data}
	return w.value(into, 0)
}

// checkSyntax checks that data is one JSON object, and nothing else.
func checkSyntax(data []byte) error {
	if !json.Valid(data) { // say why
		d := json.NewDecoder(bytes.NewReader(data))
		var first json.RawMessage
		err := d.Decode(&first)
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) && depthOf(data[:min(syntax.Offset, int64(len(data)))]) > deepestRead {
			return errTooDeep
		}
		if err != nil {
			return fmt.Errorf("it is not JSON: %w", err)
		}
		if _, err := d.Token(); !errors.Is(err, io.EOF) {
			return errors.New("something follows the JSON object")
		}
		return errors.New("it is not JSON")
	}
	if bytes.TrimLeft(data, jsonSpace)[0] != '{' {
		return errors.New("it is not a JSON object")
	}
	return nil
}

// depthOf is how deep the beginning of a JSON text nests at its end.
func depthOf(data []byte) int {
	depth, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
	}
	return depth
}

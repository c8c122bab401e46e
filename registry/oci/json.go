package oci

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"mlpromote.dev/mlpromote/registry"
)

// decode reads one JSON document that all readers must understand in the same way: no repeated
// keys in an object (not even in another case, which encoding/json would treat as equal), valid
// UTF-8, limited depth, no trailing data. Errors: CodeInvalid.
func decode(data []byte, into any) error {
	if err := checkJSON(data); err != nil {
		return registry.Errorf(registry.CodeInvalid, "not JSON that can be trusted: %w", err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return registry.Errorf(registry.CodeInvalid, "not the JSON that was expected: %w", err)
	}
	return nil
}

func checkJSON(data []byte) error {
	if !utf8.Valid(data) {
		return fmt.Errorf("it is not UTF-8")
	}
	tokens := json.NewDecoder(bytes.NewReader(data))
	tokens.UseNumber()
	if err := checkValue(tokens, 0); err != nil {
		return err
	}
	if _, err := tokens.Token(); err != io.EOF {
		return fmt.Errorf("something follows the document")
	}
	return nil
}

// checkValue reads one value with everything in it.
func checkValue(tokens *json.Decoder, depth int) error {
	token, err := tokens.Token()
	if err != nil {
		return err
	}
	open, ok := token.(json.Delim)
	if !ok {
		return nil
	}
	if depth >= maxDepth {
		return fmt.Errorf("it is nested more than %d deep", maxDepth)
	}
	seen := make(map[string]bool)
	for tokens.More() {
		if open == '{' {
			if err := checkKey(tokens, seen); err != nil {
				return err
			}
		}
		if err := checkValue(tokens, depth+1); err != nil {
			return err
		}
	}
	_, err = tokens.Token() // the closing delimiter
	return err
}

func checkKey(tokens *json.Decoder, seen map[string]bool) error {
	token, err := tokens.Token()
	if err != nil {
		return err
	}
	key, _ := token.(string)
	// Upper case first, because encoding/json folds the long s and the Kelvin sign in that way.
	folded := strings.ToLower(strings.ToUpper(key))
	if seen[folded] {
		return fmt.Errorf("the key %q appears twice", key)
	}
	seen[folded] = true
	return nil
}

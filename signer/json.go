package signer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// maxDepth bounds how deep objects and arrays may nest in bundles and statements.
const maxDepth = 64

// checkJSON checks that data is one JSON object in UTF-8, not nested too deep, in
// which no object has a key twice. Readers differ in which of two they take.
func checkJSON(data []byte) error {
	if !utf8.Valid(data) {
		return errors.New("it is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	token, err := d.Token()
	if err != nil {
		return fmt.Errorf("it is not JSON: %w", err)
	}
	if token != json.Delim('{') {
		return errors.New("it is not a JSON object")
	}
	if err := checkObject(d, 1); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the JSON object")
	}
	return nil
}

// checkObject reads on to the end of an object whose start was read.
func checkObject(d *json.Decoder, depth int) error {
	seen := make(map[string]struct{})
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return err
		}
		key, ok := token.(string)
		if !ok {
			return fmt.Errorf("key %v is no string", token)
		}
		if _, twice := seen[key]; twice {
			return fmt.Errorf("key %.80q is there twice in one object", key)
		}
		seen[key] = struct{}{}
		if err := checkValue(d, depth); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

func checkArray(d *json.Decoder, depth int) error {
	for d.More() {
		if err := checkValue(d, depth); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

// checkValue reads one value inside depth objects and arrays.
func checkValue(d *json.Decoder, depth int) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	delim, ok := token.(json.Delim)
	if !ok {
		return nil
	}
	if depth == maxDepth {
		return fmt.Errorf("it nests deeper than %d", maxDepth)
	}
	if delim == '{' {
		return checkObject(d, depth+1)
	}
	return checkArray(d, depth+1)
}

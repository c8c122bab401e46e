package mlflow

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

// maxCells bounds the table of an example.
const maxCells = 1 << 20

// readExample makes a table of an example, with a line of names first.
func readExample(data []byte, kind string) ([][]string, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var names []string
	var rows [][]any
	if kind == "dataframe" {
		var frame struct {
			Columns []any   `json:"columns"`
			Data    [][]any `json:"data"`
		}
		if decoder.Decode(&frame) != nil {
			return nil, errors.New("it has no columns and data")
		}
		for _, c := range frame.Columns {
			name, err := cell(c)
			if err != nil || name == "" {
				return nil, errors.New("a column has no name")
			}
			names = append(names, name)
		}
		rows = frame.Data
	} else {
		var array []any
		if decoder.Decode(&array) != nil {
			return nil, errors.New("it is no array")
		}
		for _, item := range array {
			rows = append(rows, flat(item, nil))
		}
		if len(rows) > 0 {
			for i := range rows[0] {
				names = append(names, "x"+strconv.Itoa(i))
			}
		}
	}
	if len(rows) == 0 || len(names) == 0 || len(rows)*len(names) > maxCells {
		return nil, errors.New("it is empty, or has too many values")
	}
	table := [][]string{names}
	for _, row := range rows {
		if len(row) != len(names) {
			return nil, errors.New("its rows have different lengths")
		}
		line := make([]string, len(row))
		for i, value := range row {
			text, err := cell(value)
			if err != nil {
				return nil, err
			}
			line[i] = text
		}
		table = append(table, line)
	}
	return table, nil
}

// flat lists the values of nested arrays in their order.
func flat(item any, into []any) []any {
	if list, ok := item.([]any); ok {
		for _, value := range list {
			into = flat(value, into)
		}
		return into
	}
	return append(into, item)
}

// cell is a value of a table as text; empty for a missing one.
func cell(value any) (string, error) {
	switch v := value.(type) {
	case nil:
		return "", nil
	case json.Number:
		return v.String(), nil
	case string:
		if strings.ContainsAny(v, "\r\n\x00") {
			return "", errors.New("it has text of several lines")
		}
		return v, nil
	case bool:
		return strconv.FormatBool(v), nil
	}
	return "", errors.New("it has values that are no numbers or texts")
}

package mlflow

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// noCases is the end of each note on an example that cannot be used.
const noCases = "; give cases of your own: --cases FILE"

// example fetches the input that was logged with the model, and writes it as a table of cases if it is one.
func (f *fetching) example(ctx context.Context, d description, m *Model) error {
	e := d.example
	if e.path == "" {
		text := "the model was logged without an input example"
		if d.hasInput {
			text += ", and its signature has no values"
		}
		m.Notes = append(m.Notes, text+", so cases are generated unless you give some: --cases FILE")
		return nil
	}
	if !localPath(e.path) {
		return registry.Errorf(registry.CodeInvalid, "MLmodel: the path %.80q of the input example leads out of the model", e.path)
	}
	if e.kind != "ndarray" && (e.kind != "dataframe" || e.orient != "split") {
		m.Notes = append(m.Notes, "the logged input example is no table or array ("+registry.PlainText(e.kind[:min(len(e.kind), 40)])+"), so it is not used"+noCases)
		return nil
	}
	var text bytes.Buffer
	if _, err := f.client.download(ctx, path.Join(f.at.root, e.path), &text, maxExample); err != nil {
		return err
	}
	table, err := readExample(text.Bytes(), e.kind)
	if err != nil {
		m.Notes = append(m.Notes, "the logged input example is not used: "+err.Error()+noCases)
		return nil
	}
	m.Example, m.Rows = filepath.Join(f.temp.Path, "example.csv"), len(table)-1
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	return errors.Join(w.WriteAll(table), os.WriteFile(m.Example, out.Bytes(), 0o600))
}

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

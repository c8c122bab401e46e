package goldenset

import (
	"bytes"
	"errors"

	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// SameRows reports whether all cases have the same values of an output.
func (g Set) SameRows(name string) (bool, error) {
	var first []byte
	for i, file := range g.Files {
		row, same, err := sameRowsOf(file.Path, name, g.Set.Shards[i].Count, first)
		if err != nil || !same {
			return false, err
		}
		first = row
	}
	return true, nil
}

// sameRowsOf reports whether all cases of a file have the values of the first case, which it returns; nil is that of the file.
func sameRowsOf(path, name string, count int, first []byte) (_ []byte, same bool, err error) {
	f, err := tensorfile.Open(path, tensorfile.Limits{})
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for from := 0; from < count; from += guessedRows {
		to := min(from+guessedRows, count)
		rows, err := f.Rows(name, int64(from), int64(to))
		if err != nil {
			return nil, false, err
		}
		size := len(rows.Data) / (to - from)
		if first == nil {
			first = bytes.Clone(rows.Data[:size])
		}
		if !bytes.Equal(rows.Data, bytes.Repeat(first, to-from)) {
			return first, false, nil
		}
	}
	return first, true, nil
}

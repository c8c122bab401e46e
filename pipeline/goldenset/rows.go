package goldenset

import (
	"crypto/sha256"
	"errors"

	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// OtherRows counts the cases that have other values of an output than most cases have.
func (g Set) OtherRows(name string) (others int, err error) {
	counts, most := make(map[[sha256.Size]byte]int), 0
	for i, file := range g.Files {
		if err := countRows(file.Path, name, g.Set.Shards[i].Count, counts); err != nil {
			return 0, err
		}
	}
	for _, n := range counts {
		most = max(most, n)
	}
	return g.Set.Count - most, nil
}

// countRows counts the rows of an output in a file by their values.
func countRows(path, name string, count int, counts map[[sha256.Size]byte]int) (err error) {
	f, err := tensorfile.Open(path, tensorfile.Limits{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for from := 0; from < count; from += guessedRows {
		to := min(from+guessedRows, count)
		rows, err := f.Rows(name, int64(from), int64(to))
		if err != nil {
			return err
		}
		size := len(rows.Data) / (to - from)
		for i := range to - from {
			counts[sha256.Sum256(rows.Data[i*size:(i+1)*size])]++
		}
	}
	return nil
}

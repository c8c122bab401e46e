package catalog

import (
	"errors"

	"mlpromote.dev/mlpromote/registry"
)

// ErrNoRow says that a change found no row to change. Databases report it as CodeNotFound.
var ErrNoRow = errors.New("no such row")

// Found returns ErrNoRow if a change found no row. It takes the results of the change.
func Found(rows int64, err error) error {
	if err == nil && rows == 0 {
		return ErrNoRow
	}
	return err
}

// UnmarkRead unmarks a record that was read while it was marked. A marked record can be deleted
// until it is unmarked, so only that change says whether the record is still there.
func UnmarkRead(marked bool, unmark func() (rows int64, err error)) error {
	if !marked {
		return nil
	}
	return Found(unmark())
}

// Convert converts each row. No rows give nil.
func Convert[R, V any](rows []R, value func(R) V) []V {
	var all []V
	for _, row := range rows {
		all = append(all, value(row))
	}
	return all
}

// Decode is Convert for rows that can be damaged. It ends with the first error.
func Decode[R, V any](rows []R, value func(R) (V, error)) ([]V, error) {
	var all []V
	for _, row := range rows {
		v, err := value(row)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// Digests converts a column of digests.
func Digests(column []string) []registry.Digest {
	return Convert(column, func(d string) registry.Digest { return registry.Digest(d) })
}

package manifest

import (
	"maps"
	"slices"
)

// MadeOf lists the files of the tool at a path, with these inputs.
func MadeOf(executable string, inputs []string) ([]string, error) {
	m, err := consists{inputs: inputs}.examine(executable, nil)
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(m.entries)), nil
}

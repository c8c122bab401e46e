package registry

import "fmt"

// Suggest gives " (did you mean ...?)" for the candidate that name was probably
// meant to be, and "" where none is near.
func Suggest(name string, candidates []string) string {
	if near := Nearest(name, candidates); near != "" {
		return fmt.Sprintf(" (did you mean %q?)", near)
	}
	return ""
}

// Nearest gives the candidate that name was probably meant to be, or "".
func Nearest(name string, candidates []string) string {
	best, distance := "", 1+len(name)/4 // edits that a typing mistake may have
	for _, c := range candidates {
		if d := editDistance(name, c); d <= distance && (best == "" || d < distance) {
			best, distance = c, d
		}
	}
	return best
}

// editDistance is the Levenshtein distance of two short names, in bytes.
func editDistance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

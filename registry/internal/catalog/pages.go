package catalog

import "iter"

// Pages reads rows page by page and yields their values. It holds nothing open between pages,
// so the catalog can change during the sequence. read returns at most size rows, which follow
// last in the order of the query; last is nil for the first page.
func Pages[R, V any](size int, read func(last *R) ([]R, error), value func(R) (V, error)) iter.Seq2[V, error] {
	return func(yield func(V, error) bool) {
		for last := (*R)(nil); ; {
			rows, err := read(last)
			if err != nil {
				var none V
				yield(none, err)
				return
			}
			for _, row := range rows {
				v, err := value(row)
				if !yield(v, err) || err != nil {
					return
				}
			}
			if len(rows) < size {
				return
			}
			last = &rows[len(rows)-1]
		}
	}
}

// RepositoryRange returns the first possible name of a page of repositories that begin with prefix and follow after,
// and the name before which they end. The characters of names are between ' ' and '~', both exclusive.
func RepositoryRange(prefix, after string) (first, beyond string) {
	if after != "" {
		after += " "
	}
	return max(prefix, after), prefix + "~"
}

package backup

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"mlpromote.dev/mlpromote/registry"
)

// content maps the digests that a catalog names to their sizes in bytes.
type content map[registry.Digest]int64

// named returns all content of all repositories.
func named(ctx context.Context, catalog Catalog) (content, error) {
	repositories, err := catalog.Repositories(ctx)
	if err != nil {
		return nil, err
	}
	all := make(content)
	for _, repository := range repositories {
		held, err := catalog.Records(ctx, repository)
		if err != nil {
			return nil, err
		}
		for _, h := range held {
			all[h.Digest] = h.Size
		}
	}
	return all, nil
}

func (c content) digests() []registry.Digest { return slices.Sorted(maps.Keys(c)) }

func (c content) bytes() (sum int64) {
	for _, size := range c {
		sum += size
	}
	return sum
}

// text returns one line per digest.
func (c content) text() []byte {
	var b bytes.Buffer
	for _, d := range c.digests() {
		fmt.Fprintln(&b, d, c[d])
	}
	return b.Bytes()
}

// readContent reads the list of a snapshot.
func readContent(path string) (content, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all := make(content)
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		var d string
		var size int64
		if _, err := fmt.Sscanf(lines.Text(), "%s %d", &d, &size); err != nil {
			return nil, registry.Errorf(registry.CodeTrust, "%s:%d: want a digest and a size, found %q", path, n, lines.Text())
		}
		all[registry.Digest(d)] = size
	}
	return all, lines.Err()
}

package spec

import (
	"math"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/strictyaml"
)

// cacheScheme begins the address of a shared build cache.
const cacheScheme = "oci://"

// Cache is the OCI repository of a shared build cache. The zero Cache is none.
type Cache struct {
	Host       string // HOST[:PORT]
	Repository string
}

// ParseCache reads oci://HOST[:PORT]/REPOSITORY. Errors: CodeInvalid.
func ParseCache(text string) (Cache, error) {
	rest, ok := strings.CutPrefix(text, cacheScheme)
	host, repository, slash := strings.Cut(rest, "/")
	if !ok || !slash || registry.ValidateHost(host) != nil || registry.ValidateModel(repository) != nil {
		return Cache{}, registry.Errorf(registry.CodeInvalid,
			"cache %q: want %sHOST[:PORT]/REPOSITORY, such as oci://registry.example.com/team/build-cache", text, cacheScheme)
	}
	return Cache{host, repository}, nil
}

// String writes the address as [ParseCache] reads it, and nothing for none.
func (c Cache) String() string {
	if c == (Cache{}) {
		return ""
	}
	return cacheScheme + c.Host + "/" + c.Repository
}

// DecodeYAML reads the address.
func (c *Cache) DecodeYAML(n *strictyaml.Node) {
	read, err := ParseCache(n.Text())
	if n.Kind() != strictyaml.Scalar || err != nil {
		n.Problemf("%s", err)
		return
	}
	*c = read
}

// Size is a number of bytes with a unit: 512MiB, 20GiB, 6 GB.
type Size int64

// ParseSize reads a number with a unit. Errors: CodeInvalid.
func ParseSize(text string) (Size, error) {
	digits := strings.TrimRight(text, "KMGTiB ")
	unit := map[string]float64{
		"": 1, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
	}[strings.TrimSpace(text[len(digits):])]
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || unit == 0 || !(n >= 0) || n*unit >= math.MaxInt64 {
		return 0, registry.Errorf(registry.CodeInvalid, "size %q: want a number with its unit, such as 512MiB or 20GiB", text)
	}
	return Size(n * unit), nil
}

// DecodeYAML reads a number with a unit.
func (s *Size) DecodeYAML(n *strictyaml.Node) {
	read, err := ParseSize(n.Text())
	if err != nil {
		n.Problemf("%s", err)
		return
	}
	*s = read
}

package elfdeps

// ParseCache reads a cache of the loader.
func ParseCache(data []byte) (map[string][]string, error) { return parseCache("cache", data) }

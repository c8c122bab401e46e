package server

import (
	"sync"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// engineCache caches the engines of releases. It drops arbitrary entries if there are too many.
type engineCache struct {
	mu      sync.Mutex
	engines map[engineKey][]artifact.Engine
}

func (c *engineCache) get(key engineKey) ([]artifact.Engine, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	engines, ok := c.engines[key]
	return engines, ok
}

func (c *engineCache) put(key engineKey, engines []artifact.Engine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.engines == nil {
		c.engines = make(map[engineKey][]artifact.Engine)
	}
	for other := range c.engines {
		if len(c.engines) < maxCachedReleases {
			break
		}
		delete(c.engines, other)
	}
	c.engines[key] = engines
}

type engineKey struct {
	environment, model string
	release            registry.Digest
}

// maxCachedReleases is more than the heads of most registries. A release takes some kilobytes.
const maxCachedReleases = 10_000

package server

import (
	"mlpromote.dev/mlpromote/registry/internal/lru"
)

// server is the state of the API. It is only a cache.
type server struct {
	Config
	engineCache *engineCache
	answers     *lru.Cache[question, answered]
	feed        *feed
	streams     *streams
	document    []byte // OpenAPI
}

func newServer(c Config) server {
	return server{
		Config: c, engineCache: new(engineCache), answers: newAnswers(), feed: newFeed(c.History, c.Poll),
		streams: newStreams(),
	}
}

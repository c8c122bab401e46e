package server

import (
	"mlpromote.dev/mlpromote/registry/internal/lru"
	"mlpromote.dev/mlpromote/registry/server/feed"
)

// server is the state of the API. It is only a cache.
type server struct {
	Config
	engineCache *engineCache
	answers     *lru.Cache[question, answered]
	feed        *feed.Feed
	streams     *feed.Streams
	document    []byte // OpenAPI
}

func newServer(c Config) server {
	return server{
		Config: c, engineCache: new(engineCache), answers: newAnswers(), feed: feed.New(c.History, c.Poll),
		streams: feed.NewStreams(),
	}
}

package service_test

import (
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/service"
)

func TestInterface(t *testing.T) {
	t.Parallel()
	registrytest.TestInterface(t, func(t *testing.T) registrytest.Registry { return setup(t).Registry })
}

// What holds where content is beside the catalog holds where it is in another registry.
func TestInterfaceOverAnotherRegistry(t *testing.T) {
	t.Parallel()
	registrytest.TestInterface(t, func(t *testing.T) registrytest.Registry { return setup(t, external("staging", "prod")).Registry })
}

func TestNewRefusesWhatIsMissing(t *testing.T) {
	t.Parallel()
	good := setup(t).config
	for name, remove := range map[string]func(c *service.Config){
		"everything":   func(c *service.Config) { *c = service.Config{} },
		"catalog":      func(c *service.Config) { c.Catalog = nil },
		"listing":      func(c *service.Config) { c.Listing = nil },
		"intents":      func(c *service.Config) { c.Intents = nil },
		"content":      func(c *service.Config) { c.Content = nil },
		"verify":       func(c *service.Config) { c.Verify = nil },
		"sign":         func(c *service.Config) { c.Sign = nil },
		"mirror":       func(c *service.Config) { c.Mirror, c.Environments.List[1].Registry = nil, host },
		"environments": func(c *service.Config) { c.Environments = registry.Environments{} },
		"chain":        func(c *service.Config) { c.Environments.List[1].From = "moon" },
	} {
		c := good
		c.Environments.List = append([]registry.Environment{}, good.Environments.List...)
		remove(&c)
		if s, err := service.New(c); registry.CodeOf(err) != registry.CodeInvalid || s != nil {
			t.Errorf("without %s: service %v, error %v, want CodeInvalid", name, s, err)
		}
	}
	good.Now = nil
	if s, err := service.New(good); err != nil || s.Now == nil {
		t.Errorf("without a clock: error %v", err)
	}
}

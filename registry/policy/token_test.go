package policy_test

import (
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

func TestTokenValidate(t *testing.T) {
	t.Parallel()
	created := hours(1)
	for name, c := range map[string]struct {
		change func(*storage.Token)
		valid  bool
	}{
		"that never expires":         {func(*storage.Token) {}, true},
		"that expires later":         {func(n *storage.Token) { n.Expires = created.Add(time.Second) }, true},
		"that expired when made":     {func(n *storage.Token) { n.Expires = created }, false},
		"with no name":               {func(n *storage.Token) { n.Name = "" }, false},
		"with an upper-case name":    {func(n *storage.Token) { n.Name = "CI" }, false},
		"with no ID":                 {func(n *storage.Token) { n.ID = "" }, false},
		"without its hash":           {func(n *storage.Token) { n.Hash = [32]byte{} }, false},
		"that grants nothing":        {func(n *storage.Token) { n.Grants = nil }, false},
		"with an unknown permission": {func(n *storage.Token) { n.Grants = append(n.Grants, grant("prod", "**", "fly")) }, false},
	} {
		n := storage.Token{ID: "aaaaaaaaaaaaaaaa", Name: "ci", Hash: [32]byte{1}, Created: created, Grants: []storage.Grant{grant("staging", "**", "push")}}
		c.change(&n)
		if err := n.Validate(); (err == nil) != c.valid || err != nil && !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("a token %s: error %v, want valid %t", name, err, c.valid)
		}
	}
}

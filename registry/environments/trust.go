package environments

import (
	"slices"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/strictyaml"
	"mlpromote.dev/mlpromote/registry/trust"
)

// resourceScheme begins every resource URI.
const resourceScheme = "oci://"

// entry is one trust entry as it is written.
type entry struct {
	Key       *string   `yaml:"key"`
	Identity  *identity `yaml:"identity"`
	State     string    `yaml:"state"`
	Since     string    `yaml:"since"`
	From      string    `yaml:"from"`
	Until     string    `yaml:"until"`
	Roles     []string  `yaml:"roles,required"`
	Resources []string  `yaml:"resources,required"`
	NodeTypes []string  `yaml:"nodeTypes"`
}

// checkTrust reads the entries and reports their mistakes.
func checkTrust(doc *strictyaml.Document, written []entry) []trust.TrustEntry {
	if len(written) == 0 {
		doc.At("trust").Problemf("trust is empty: want at least one key, because no signature can be verified without a key")
	}
	var out []trust.TrustEntry
	for i, e := range written {
		c := checker{doc, i}
		read := trust.TrustEntry{Roles: c.roles(e.Roles), Resources: c.resources(e.Resources), NodeTypes: c.nodeTypes(e)}
		c.signer(e, &read)
		c.attester(out, read)
		c.state(e, &read)
		c.window(e, &read)
		c.sameState(out, read)
		c.publishesAlone(out, read)
		out = append(out, read)
	}
	return out
}

// signer reads the key or the identity of the entry.
func (c checker) signer(e entry, into *trust.TrustEntry) {
	switch {
	case e.Key == nil && e.Identity == nil:
		c.at().Problemf("key %q is missing", "key")
	case e.Key != nil && e.Identity != nil:
		c.at("identity").Problemf("the entry has both a key and an identity: want one of them")
	case e.Identity != nil:
		into.Identity = c.identity(*e.Identity)
	case *e.Key == "" || strings.ContainsRune(*e.Key, 0):
		c.at("key").Problemf("key is empty: want the path of a public key in PEM")
	default:
		into.Key = *e.Key
	}
}

// attester refuses an attester's key with another role, and an identity: who has it speaks for other
// people, and is listed apart.
func (c checker) attester(earlier []trust.TrustEntry, e trust.TrustEntry) {
	attests := func(e trust.TrustEntry) bool { return slices.Contains(e.Roles, evidence.RoleAttester) }
	switch {
	case attests(e) && len(e.Roles) > 1:
		c.at("roles").Problemf("the role %q goes with no other: give the service's attester a key of its own", evidence.RoleAttester)
	case attests(e) && e.Identity != nil:
		c.at("roles").Problemf("the role %q is for a key of the service, not for an identity", evidence.RoleAttester)
	}
	for _, o := range earlier {
		if e.Key != "" && o.Key == e.Key && attests(o) != attests(e) {
			c.at("key").Problemf("key %s has the role %q in one entry and another role in another: give the service's attester a key of its own",
				e.Key, evidence.RoleAttester)
			return
		}
	}
}

func (c checker) resources(written []string) []string {
	if len(written) == 0 {
		c.at("resources").Problemf("resources is empty: want prefixes such as %q", resourceScheme+"local/")
	}
	for j, r := range written {
		if len(r) <= len(resourceScheme) || !strings.HasPrefix(r, resourceScheme) {
			c.at("resources", j).Problemf("resource %q: want %s and the name of a registry, for example %q", r, resourceScheme, resourceScheme+"local/")
		}
	}
	return written
}

func (c checker) roles(written []string) []evidence.Role {
	if len(written) == 0 {
		c.at("roles").Problemf("roles is empty: want some of %s", names(evidence.KeyRoles()))
	}
	var roles []evidence.Role
	for j, name := range written {
		role := evidence.Role(name)
		switch {
		case !slices.Contains(evidence.KeyRoles(), role):
			c.at("roles", j).Problemf("unknown role %q%s: want one of %s", name, suggest(name, evidence.KeyRoles()), names(evidence.KeyRoles()))
		case slices.Contains(roles, role):
			c.at("roles", j).Problemf("role %q is here twice", name)
		}
		roles = append(roles, role)
	}
	return roles
}

// nodeTypes reads the node types. Only reports of verifiers come from node types.
func (c checker) nodeTypes(e entry) []string {
	if e.NodeTypes == nil {
		return nil
	}
	if !slices.Contains(e.Roles, string(evidence.RoleVerifier)) {
		c.at("nodeTypes").Problemf("nodeTypes says whose reports count, but the entry does not have the role %q", evidence.RoleVerifier)
	}
	if len(e.NodeTypes) == 0 {
		c.at("nodeTypes").Problemf("nodeTypes is empty: remove the key to let reports of every node type count")
	}
	for j, name := range e.NodeTypes {
		if err := registry.ValidateName(name); err != nil {
			c.at("nodeTypes", j).Problemf("node type: %s", err)
		}
		if slices.Contains(e.NodeTypes[:j], name) {
			c.at("nodeTypes", j).Problemf("node type %q is here twice", name)
		}
	}
	return e.NodeTypes
}

// state reads the state of the key, and the time from which it applies.
func (c checker) state(e entry, into *trust.TrustEntry) {
	state := evidence.KeyState(e.State)
	switch {
	case !c.has("state") && !c.has("since"):
		return
	case !c.has("state"), state == evidence.KeyTrusted && c.has("since"):
		c.at("since").Problemf("since has no meaning for a trusted key: it belongs to the states %s and %s", evidence.KeyRetired, evidence.KeyRevoked)
		return
	case !slices.Contains(evidence.KeyStates(), state):
		c.at("state").Problemf("unknown state %q%s: want one of %s", e.State, suggest(e.State, evidence.KeyStates()), names(evidence.KeyStates()))
		return
	}
	into.State = state
	if state == evidence.KeyTrusted {
		return
	}
	since, ok := c.since(e)
	switch {
	case !ok:
	case state == evidence.KeyRetired:
		into.RetiredAt = since
	default:
		into.RevokedAt = since
	}
}

// window reads when statements of the signer count.
func (c checker) window(e entry, into *trust.TrustEntry) {
	bounds := []struct {
		key, text string
		to        *time.Time
	}{{"from", e.From, &into.Window.From}, {"until", e.Until, &into.Window.Until}}
	for _, b := range bounds {
		if !c.has(b.key) {
			continue
		}
		at, err := time.Parse(time.RFC3339, b.text)
		if err != nil || at.IsZero() {
			c.at(b.key).Problemf("%s %q: want a time such as 2026-11-21T09:00:00Z", b.key, b.text)
		}
		*b.to = at.UTC()
	}
	if w := into.Window; !w.Until.IsZero() && !w.From.Before(w.Until) {
		c.at("until").Problemf("until is not after from, so nothing would count: to end trust in a key, set its state")
	}
}

func (c checker) since(e entry) (time.Time, bool) {
	const want = "want a time such as 2026-11-21T09:00:00Z"
	if !c.has("since") {
		c.at("state").Problemf("key %q is missing: the time from which the key is %s; %s", "since", e.State, want)
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339, e.Since)
	if err != nil {
		c.at("since").Problemf("since %q: %s", e.Since, want)
	}
	return at.UTC(), err == nil
}

// sameState refuses an entry whose key has another state in an earlier entry, because it would
// be unclear which of them applies.
func (c checker) sameState(earlier []trust.TrustEntry, e trust.TrustEntry) {
	for _, o := range earlier {
		if e.Key != "" && o.Key == e.Key && !o.Window.Equal(e.Window) {
			c.at("key").Problemf("key %s has another window in an earlier entry: want the same from and until in all entries of a key", e.Key)
			return
		}
		if e.Key != "" && o.Key == e.Key && (o.EffectiveState() != e.EffectiveState() ||
			!o.RetiredAt.Equal(e.RetiredAt) || !o.RevokedAt.Equal(e.RevokedAt)) {
			c.at("key").Problemf("key %s has another state in an earlier entry: want the same state and time in all entries of a key", e.Key)
			return
		}
	}
}

// publishesAlone refuses a publisher with another role: whoever steals the key of a promoter must not
// be able to say who is trusted.
func (c checker) publishesAlone(earlier []trust.TrustEntry, e trust.TrustEntry) {
	publishes := func(e trust.TrustEntry) bool { return slices.Contains(e.Roles, evidence.RolePublisher) }
	other := publishes(e) && (len(e.Roles) > 1 || e.Identity != nil)
	for _, o := range earlier {
		other = other || e.Key != "" && o.Key == e.Key && publishes(o) != publishes(e)
	}
	if other {
		c.at("roles").Problemf("a %s has a key of its own, without another role: whoever takes another key must not say who is trusted",
			evidence.RolePublisher)
	}
}

// has reports whether the entry has a key.
func (c checker) has(key string) bool {
	return slices.ContainsFunc(c.at().Entries(), func(e strictyaml.Entry) bool { return e.Key == key })
}

// names joins words for a message.
func names[S ~string](words []S) string {
	var texts []string
	for _, w := range words {
		texts = append(texts, string(w))
	}
	return strings.Join(texts, ", ")
}

func suggest[S ~string](name string, words []S) string {
	return registry.Suggest(name, strings.Split(names(words), ", "))
}

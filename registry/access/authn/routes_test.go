package authn_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/access/authn"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/distribution"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/node"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/rest"
	"mlpromote.dev/mlpromote/registry/server"
	"mlpromote.dev/mlpromote/registry/service"
	"mlpromote.dev/mlpromote/registry/service/backend"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
)

// house is a whole service, with a release that was promoted to prod.
type house struct {
	*world
	registrytest.Registry
	release artifact.Release
	handler http.Handler
}

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{world: setup(t)}
	blobs := mem.NewBlobs()
	store := oci.New(func(_ context.Context, name string) (oci.Repository, error) { return oci.Local(blobs, h.db, name), nil }, oci.Options{})
	keys := registrytest.NewKeys(registrytest.RoleKeys())
	svc, err := service.New(backend.Backend{
		RestrictionBundles: mem.NewTable[storage.RestrictionBundle](), TrustBundles: mem.NewTable[storage.TrustBundleDocument](),
		ReadKey:        func(string) ([]byte, error) { return []byte("PEM"), nil },
		KeptCheckpoint: func(context.Context, int64) (trust.KeptCheckpoint, error) { return trust.KeptCheckpoint{}, nil },
		Environments:   registrytest.Chain(), Catalog: h.db, Records: h.db, Listing: h.db, Intents: h.db, Content: store, Mirror: store, Verify: keys.Verify, Sign: keys.Sign,
	})
	if err != nil {
		t.Fatal(err)
	}
	h.Registry = registrytest.Registry{Interface: svc, Parts: store, Keys: keys}
	h.release = h.Promoted(t, registrytest.Build{})
	api, err := server.New(server.Config{
		Registry: access.Guard(svc), Authorize: access.AllowRoute, History: h.db.History, Preview: access.Preview(service.Remember(svc, h.db, 1<<20), svc.Environments),
		NodeTypes: mem.NewTable[artifact.Node](), Runtimes: mem.NewTable[artifact.Runtime](),
		Nodes:    access.GuardNodes(service.NodeReports{Table: mem.NewTable[storage.NodeReport](), Inspector: svc, Clock: h.db, Life: time.Hour}),
		Webhooks: mem.NewTable[storage.Webhook](), Deliveries: mem.NewTable[storage.Delivery](), Idempotency: h.db, Tokens: h.db, Clock: h.db,
		CheckWebhookURL: func(string) error { return nil }, Stop: ended(),
		ReadNode: node.Parse, CheckNode: node.Check, ReadRuntime: node.ParseRuntimeDocument, ReadLabels: node.FromLabels,
	})
	if err != nil {
		t.Fatal(err)
	}
	permissions := map[distribution.Action]storage.Permission{
		distribution.Pull: storage.PermissionRead, distribution.Push: storage.PermissionPush, distribution.Delete: storage.PermissionAdminister,
		distribution.List: storage.PermissionList,
	}
	doors := access.Repositories{Environments: registrytest.Chain()}
	endpoint, err := distribution.New(distribution.Config{
		Blobs: blobs, Refs: h.db, Deleter: h.db, Uploads: mem.NewUploads(blobs),
		Authorize: func(ctx context.Context, a distribution.Access) error {
			return doors.Authorize(ctx, a.Repository, permissions[a.Action])
		},
		Challenge: func(r *http.Request, a distribution.Access) string {
			return h.Challenge(r, a.Repository, permissions[a.Action])
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/api/", h.API(api))
	mux.Handle("/v2/", h.Authenticator.Registry(endpoint))
	h.handler = mux
	return h
}

// caller is somebody who sends requests.
type caller struct {
	name          string
	authorization string
	grants        []storage.Grant
	unknown       bool
}

// callers are who has each one permission for vision/digits in an environment; who has it
// for another environment, or another model; and all those whom nobody knows.
func (h *house) callers(t *testing.T) []caller {
	var all []caller
	for _, permission := range storage.Permissions() {
		for _, at := range [][2]string{
			{"staging", registrytest.Model}, {"prod", registrytest.Model}, {"**", registrytest.Model}, {"*", "vision/*"}, {"**", "**"},
			{"lab", registrytest.Model}, {"**", "vision/letters"}, {"**", "vision/digits/**"}, {"**", "digits"},
		} {
			grant := storage.Grant{Permissions: []storage.Permission{permission}, Environment: at[0], Model: at[1]}
			_, text := h.mint(t, fmt.Sprintf("t%d", len(all)), noon.Add(time.Hour), grant)
			all = append(all, caller{fmt.Sprintf("%s of %s in %s", permission, at[1], at[0]), "Bearer " + text, []storage.Grant{grant}, false})
		}
	}
	everything := storage.Grant{Permissions: storage.Permissions(), Environment: "**", Model: "**"}
	expired, _, err := access.Mint("expired", []storage.Grant{everything}, noon.Add(-2*time.Hour), noon.Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	_, expiredText := h.mint(t, "will-expire", noon.Add(time.Nanosecond), everything)
	id, revoked := h.mint(t, "revoked", noon.Add(time.Hour), everything)
	if err := h.db.RevokeToken(t.Context(), id, noon); err != nil {
		t.Fatal(err)
	}
	h.at(noon.Add(time.Second))
	for name, authorization := range map[string]string{
		"nobody": "", "expired": "Bearer " + expiredText, "revoked": "Bearer " + revoked, "a stranger": "Bearer mlp_" + expired.ID + "_x",
		"a password of nobody": basic("admin", "admin"), "another scheme": "Negotiate " + revoked,
	} {
		all = append(all, caller{name, authorization, nil, true})
	}
	return all
}

// may reports whether the caller has a permission in an environment; in none, anywhere.
func (c caller) may(permission storage.Permission, environment string) bool {
	p := storage.Principal{Grants: c.grants}
	switch {
	case permission == "":
		return true
	case environment == "":
		return p.MayAnywhere(permission)
	case environment == all:
		return p.May(permission, "", "")
	case environment == wholeProd:
		return p.May(permission, "prod", "")
	case environment == bothEnds:
		return p.May(permission, "staging", registrytest.Model) && p.May(permission, "prod", registrytest.Model)
	case environment == eitherEnd:
		return p.May(permission, "staging", registrytest.Model) || p.May(permission, "prod", registrytest.Model)
	case environment == someOfProd:
		return p.MayIn(permission, "prod")
	}
	return p.May(permission, environment, registrytest.Model)
}

// row says what a request takes: a permission for vision/digits in an environment. No
// permission is any at all; no environment is anywhere; all is every model everywhere.
type row struct {
	query       string
	body        any
	permission  storage.Permission
	environment string
}

// all stands for what belongs to no model, wholeProd for every model in prod, and someOfProd for
// any model there. bothEnds takes it in both environments of a promotion, eitherEnd in one of them.
const (
	all        = "all"
	wholeProd  = "prod, every model"
	someOfProd = "prod, any model"
	bothEnds   = "staging and prod"
	eitherEnd  = "staging or prod"
)

// expected is who may do what over REST, by method and pattern. A route that is not here
// fails the test.
func (h *house) expected(t *testing.T) map[string][]row {
	const (
		read       = storage.PermissionRead
		push       = storage.PermissionPush
		verify     = storage.PermissionVerify
		approve    = storage.PermissionApprove
		promote    = storage.PermissionPromote
		administer = storage.PermissionAdminister
	)
	engine := h.release.Engines[0].Digest
	attach := func(predicateType, environment string, permission storage.Permission) row {
		role, _ := evidence.RoleFor(predicateType)
		bundle := h.Bundle(t, string(role), predicateType, struct{}{}, engine)
		return row{body: api.Attachment{Environment: environment, Release: h.release.Digest, Subject: engine, Bundle: bundle},
			permission: permission, environment: environment}
	}
	inProd := "?environment=prod"
	oneInProd := inProd + "&digest=" + string(engine)
	described := registrytest.Node("v3")
	anywhere, everywhere := row{permission: read}, row{permission: administer, environment: all}
	ofModel := func(operation string) string { return rest.ModelsPath + "{model}/" + operation }
	return map[string][]row{
		"GET " + rest.OpenAPIPath:              {anywhere},
		"GET " + rest.EnvironmentsPath:         {{}},
		"GET " + rest.HeadsPath:                {{inProd + "&model=" + registrytest.Model, nil, read, "prod"}, anywhere},
		"GET " + rest.ModelListPath:            {anywhere},
		"GET " + rest.TargetsPath:              {anywhere},
		"GET " + rest.HistoryPath:              {{inProd + "&model=" + registrytest.Model, nil, read, "prod"}, anywhere},
		"GET " + rest.VerificationPath:         {anywhere},
		"GET " + rest.CheckpointPath:           {anywhere},
		"GET " + rest.CheckpointsPath:          {anywhere},
		"GET " + rest.ProofsPath + "{seq}":     {anywhere}, // of events that the caller may read
		"GET " + rest.TrustBundlePath:          {{}},       // public keys, and lists that say what to avoid
		"POST " + rest.TrustBundlePath:         {{"", rest.TrustBundle{Bundle: []byte("{}")}, administer, all}},
		"GET " + rest.RestrictionsPath:         {{inProd, nil, read, someOfProd}},
		"POST " + rest.RestrictionsPath:        {{"", rest.Restriction{Environment: "prod", Bundle: []byte("{}")}, approve, wholeProd}},
		"GET " + rest.EventsPath:               {{inProd + "&model=" + registrytest.Model, nil, read, "prod"}, anywhere},
		"GET " + rest.PromotionsPath + "{seq}": {anywhere},
		"GET " + ofModel(rest.OpResolve): {{"?environment=prod&arch=amd64&level=v3&runtime=onnxruntime:1.30.0", nil, read, "prod"},
			{"?environment=staging&arch=amd64", nil, read, "staging"}},
		"POST " + ofModel(rest.OpResolve):       {{"", rest.ResolveRequest{Environment: "prod", Node: &described}, read, "prod"}},
		"GET " + ofModel(rest.OpReleases):       {{inProd, nil, read, "prod"}},
		"GET " + ofModel(rest.OpRelease):        {{inProd, nil, read, "prod"}, {"?environment=staging&ref=1.0.0", nil, read, "staging"}},
		"GET " + ofModel(rest.OpEngines):        {{inProd, nil, read, "prod"}},
		"GET " + ofModel(rest.OpEngine):         {{oneInProd, nil, read, "prod"}},
		"GET " + ofModel(rest.OpComparison):     {{"?from=" + string(h.release.Digest) + "&to=" + string(h.release.Digest), nil, read, eitherEnd}},
		"GET " + ofModel(rest.OpEvidence):       {{inProd, nil, read, "prod"}},
		"GET " + ofModel(rest.OpQuarantines):    {{inProd, nil, read, "prod"}},
		"GET " + ofModel(rest.OpBundle):         {{oneInProd, nil, read, "prod"}},
		"GET " + ofModel(rest.OpPromotionCheck): {{inProd + "&digest=" + string(h.release.Digest), nil, read, bothEnds}},
		"GET " + ofModel(rest.OpPromotions):     {{inProd, nil, read, "prod"}},
		"POST " + ofModel(rest.OpPublications):  {{"", api.Publication{Release: h.release.Digest}, push, "staging"}},
		"POST " + ofModel(rest.OpEvidence): {
			attach(evidence.PredicateSign, "staging", push), attach(evidence.PredicateProvenance, "prod", push),
			attach(evidence.PredicateParity, "staging", verify), attach(evidence.PredicatePerformance, "prod", verify),
			attach(evidence.PredicateTestResult, "prod", verify),
			attach(evidence.PredicateApproval, "staging", approve), attach(evidence.PredicateQuarantine, "prod", approve),
			attach(evidence.PredicateVSA, "prod", promote),
		},
		"POST " + ofModel(rest.OpAttestations): {
			{"", evidence.AttestRequest{Kind: evidence.AttestQuarantine, Environment: "prod", Release: h.release.Digest, Comment: "x"}, storage.PermissionAttest, "prod"},
			{"", evidence.AttestRequest{Kind: evidence.AttestApproval, Environment: "prod", Release: h.release.Digest, Comment: "x"}, storage.PermissionAttest, "prod"},
		},
		"POST " + ofModel(rest.OpPromotions): {
			{"", api.PromoteRequest{}, promote, "prod"}, {"", api.PromoteRequest{From: "staging", To: "prod", DryRun: true}, promote, "prod"}},
		"POST " + ofModel(rest.OpRollbacks): {{"", api.RollbackRequest{Environment: "prod", Reason: "x"}, promote, "prod"},
			{"", api.RollbackRequest{Environment: "staging", Reason: "x"}, promote, "staging"}},
		"POST " + ofModel(rest.OpHolds):            {{"", rest.Hold{Environment: "prod", Reason: "x"}, promote, "prod"}},
		"POST " + ofModel(rest.OpAcceptances):      {{"", rest.HistoryAcceptance{Environment: "prod", Reason: "x"}, administer, "prod"}},
		"POST " + ofModel(rest.OpHoldReleases):     {{"", api.HoldRelease{Environment: "prod", Reason: "x"}, promote, "prod"}},
		"GET " + rest.OperationsPath:               {everywhere},
		"GET " + rest.ConfigurationPath:            {everywhere},
		"POST " + rest.ConfigurationPath:           {everywhere},
		"GET " + rest.NodeTypesPath:                {anywhere},
		"GET " + rest.NodeTypesPath + "/{name}":    {anywhere},
		"PUT " + rest.NodeTypesPath + "/{name}":    {everywhere},
		"DELETE " + rest.NodeTypesPath + "/{name}": {everywhere},
		"GET " + rest.NodeReportsPath:              {{inProd + "&model=" + registrytest.Model, nil, read, "prod"}, {inProd, nil, read, someOfProd}, {inProd + "&silent=true&model=" + registrytest.Model, nil, read, "prod"}},
		"POST " + rest.NodeReportsPath: {
			{"", rest.NodeReport{Node: "n", Environment: "prod", Model: registrytest.Model, Release: h.release.Digest, Engine: engine}, read, "prod"},
			{"", rest.NodeReport{Node: "n", Environment: "staging", Model: registrytest.Model, Release: h.release.Digest, Engine: engine}, read, "staging"}},
		"GET " + rest.RuntimesPath:                {anywhere},
		"GET " + rest.RuntimesPath + "/{name}":    {anywhere},
		"PUT " + rest.RuntimesPath + "/{name}":    {everywhere},
		"DELETE " + rest.RuntimesPath + "/{name}": {everywhere},
		"GET " + rest.WebhooksPath:                {everywhere},
		"POST " + rest.WebhooksPath:               {everywhere},
		"GET " + rest.WebhooksPath + "/{id}":      {everywhere},
		"PUT " + rest.WebhooksPath + "/{id}":      {everywhere},
		"DELETE " + rest.WebhooksPath + "/{id}":   {everywhere},
		"GET " + rest.TokensPath:                  {everywhere},
		"POST " + rest.TokensPath:                 {everywhere},
		"GET " + rest.TokensPath + "/{id}":        {everywhere},
		"DELETE " + rest.TokensPath + "/{id}":     {everywhere},
	}
}

// ended is a service that stops: streams of events end as soon as they have begun.
func ended() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

func methods() []string {
	return []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
}

func (h *house) send(t *testing.T, method, path, authorization string, body any) *httptest.ResponseRecorder {
	t.Helper()
	var encoded []byte
	if body != nil {
		var err error
		if encoded, err = json.Marshal(body); err != nil {
			t.Fatal(err)
		}
	}
	r := httptest.NewRequest(method, path, bytes.NewReader(encoded))
	r.Header.Set("Content-Type", "application/json")
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	recorder := httptest.NewRecorder()
	h.handler.ServeHTTP(recorder, r)
	return recorder
}

// TestEveryRouteAsks sends each request of the API as each caller. Whatever is not
// expected to be allowed must be refused, and a route that nobody expects fails.
func TestEveryRouteAsks(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	expected, callers := h.expected(t), h.callers(t)
	for _, o := range rest.Table() {
		route := o.Describe()
		name := route.Method + " " + route.Path
		rows, ok := expected[name]
		if !ok {
			t.Errorf("%s: no row says who may do that", name)
		}
		path := strings.NewReplacer("{model}", registrytest.Model, "{name}", "nothing", "{id}", "nothing", "{seq}", "1").Replace(route.Path)
		for _, want := range rows {
			for _, c := range callers {
				got := h.send(t, route.Method, path+want.query, c.authorization, want.body)
				refusal := wantRefusal(c, want)
				if code, told := refused(t, got); code != refusal {
					t.Errorf("%s%s as %s: %d %s, want %q", name, want.query, c.name, got.Code, told, refusal)
				}
			}
		}
	}
}

// wantRefusal is the code that a caller must get, or none.
func wantRefusal(c caller, want row) registry.Code {
	switch {
	case c.unknown:
		return registry.CodeUnauthenticated
	case !c.may(want.permission, want.environment):
		return registry.CodeForbidden
	}
	return ""
}

// refused returns the code if a caller was refused for lack of permission. A refusal by policy
// has another status.
func refused(t *testing.T, got *httptest.ResponseRecorder) (registry.Code, string) {
	t.Helper()
	if got.Code != http.StatusUnauthorized && got.Code != http.StatusForbidden {
		if strings.Contains(got.Body.String(), "no resource") || got.Code == http.StatusMethodNotAllowed || got.Code >= 500 {
			t.Errorf("%d %.300s", got.Code, got.Body)
		}
		return "", got.Body.String()
	}
	problem := decode[rest.Problem](t, got)
	return problem.Code, problem.Detail
}

// TestEveryEndpointAsks does the same with the OCI endpoint, where nobody at all writes
// what is protected or belongs to no environment.
func TestEveryEndpointAsks(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	callers := h.callers(t)
	actions := map[string]storage.Permission{ // a second time, since the first is what is tested
		"GET /v2/": "", "HEAD /v2/": "", "GET /v2/_catalog": "", // which lists what may be listed
		"GET blobs/{digest}": "read", "HEAD blobs/{digest}": "read", "DELETE blobs/{digest}": "administer",
		"POST blobs/uploads/": "push", "GET blobs/uploads/{id}": "push", "PATCH blobs/uploads/{id}": "push", "PUT blobs/uploads/{id}": "push", "DELETE blobs/uploads/{id}": "push",
		"GET manifests/{reference}": "read", "HEAD manifests/{reference}": "read", "PUT manifests/{reference}": "push", "DELETE manifests/{reference}": "administer",
		"GET tags/list": "read", "GET referrers/{digest}": "read",
	}
	for _, route := range distribution.Routes() {
		name := route.Method + " " + strings.TrimPrefix(route.Pattern, "/v2/{repository}/")
		permission, ok := actions[name]
		if !ok {
			t.Errorf("%s: no row says who may do that", name)
			continue
		}
		for _, environment := range []string{"staging", "prod", "elsewhere"} {
			path := strings.NewReplacer("{repository}", environment+"/"+registrytest.Model, "{digest}", digest.FromString("nothing").String(),
				"{reference}", "9.9.9", "{id}", "0f0f0f0f-0f0f-4f0f-8f0f-0f0f0f0f0f0f").Replace(route.Pattern)
			for _, c := range callers {
				got := h.send(t, route.Method, path, c.authorization, nil)
				h.wantEndpoint(t, name+" in "+environment, got, c, permission, environment)
			}
		}
	}
}

func (h *house) wantEndpoint(t *testing.T, name string, got *httptest.ResponseRecorder,
	c caller, permission storage.Permission, environment string) {
	t.Helper()
	allowed := c.may(permission, environment) && (permission == "" || permission == storage.PermissionRead || environment == "staging")
	switch {
	case c.unknown:
		challenge := got.Header().Get("WWW-Authenticate")
		if got.Code != http.StatusUnauthorized || !strings.HasPrefix(challenge, `Bearer realm="`) ||
			(permission != "") != strings.Contains(challenge, `scope="repository:`+environment+"/"+registrytest.Model+":pull") {
			t.Errorf("%s as %s: %d %s, challenge %s", name, c.name, got.Code, got.Body, challenge)
		}
	case !allowed && got.Code != http.StatusForbidden:
		t.Errorf("%s as %s: %d %s, want 403", name, c.name, got.Code, got.Body)
	case allowed && (got.Code == http.StatusForbidden || got.Code == http.StatusUnauthorized || got.Code >= 500):
		t.Errorf("%s as %s: %d %s, want it to be let in", name, c.name, got.Code, got.Body)
	}
	if got.Code == http.StatusForbidden || got.Code == http.StatusUnauthorized {
		if body := got.Body.String(); !strings.HasPrefix(name, "HEAD") && !strings.Contains(body, `"code":"`+map[int]string{401: "UNAUTHORIZED", 403: "DENIED"}[got.Code]+`"`) {
			t.Errorf("%s as %s: %d %s is not in the form of the protocol", name, c.name, got.Code, body)
		}
	}
}

// What the authenticator does not know at all is refused before anything is looked up: a route that
// somebody adds tomorrow too.
func TestUnknownPathsAreKeptToThemselves(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for _, path := range []string{"/api/", "/api/v1/", "/api/v1/secret",
		"/api/v2/heads", "/api/v1/models/vision/digits/secret", "/api/v1/models/../heads"} {
		for _, method := range methods() {
			if got := h.send(t, method, path, "", nil); got.Code != http.StatusUnauthorized && got.Code/100 != 3 {
				t.Errorf("%s %s: %d %s", method, path, got.Code, got.Body)
			}
		}
	}
	if got := h.send(t, http.MethodGet, authn.TokenPath, "", nil); got.Code != http.StatusUnauthorized {
		t.Errorf("%d %s", got.Code, got.Body)
	}
}

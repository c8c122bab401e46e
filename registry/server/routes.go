package server

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/wire"
)

// Route is one operation of the API.
type Route struct {
	Method string
	// Pattern is the path. {model} matches a name that may have slashes, {name} the rest of a
	// path, and any other name in braces one component.
	Pattern string
	// Permission is the permission that the operation requires.
	Permission registry.Permission
	// ByRegistry means that only the handler knows environment and model. It uses
	// registry.Interface for everything, so the Registry of a Config checks permissions.
	// Config.Authorize checks other routes before they are handled.
	ByRegistry bool
	Summary    string
	Query      []string // allowed query parameters
}

// Routes lists every operation that [New] serves.
func Routes() []Route {
	var routes []Route
	for _, r := range table() {
		routes = append(routes, r.Route)
	}
	return routes
}

// route is a Route with its handler.
type route struct {
	Route
	handle func(s server, r *request) (*response, error)
}

// Largest request bodies in bytes.
const (
	smallBody    = 64 << 10     // names, digests, a comment
	documentBody = 512 << 10    // what a machine or a runtime is, with all of its labels
	signedBody   = 6 << 20      // a signed document of at most 4 MiB: base64 adds a third
	evidenceBody = wire.MaxBody // a bundle with its per-case figures
)

// bodyLimits lists the routes whose bodies may be larger than smallBody, by key.
func bodyLimits() map[string]int64 {
	return map[string]int64{
		"POST " + modelPrefix + wire.OpEvidence: evidenceBody,
		"POST " + modelPrefix + wire.OpResolve:  documentBody,
		"POST " + wire.NodeReportsPath:          documentBody,
		"PUT " + wire.NodeTypesPath + "/{name}": documentBody,
		"PUT " + wire.RuntimesPath + "/{name}":  documentBody,
		"POST " + wire.RestrictionsPath:         signedBody,
		"POST " + wire.TrustBundlePath:          signedBody,
	}
}

// request is a request with its route's parameters.
type request struct {
	*http.Request
	Name   string // of the model, or the value of {name} in the path
	Values query
	writer http.ResponseWriter
}

// modelPrefix is the prefix of patterns of operations on a model.
const modelPrefix = wire.ModelsPath + "{model}/"

// table lists all operations. Routes, permissions and documentation are generated from it.
func table() []route {
	const (
		read    = registry.PermissionRead
		push    = registry.PermissionPush
		verify  = registry.PermissionVerify
		promote = registry.PermissionPromote
		get     = http.MethodGet
		post    = http.MethodPost
	)
	about := []string{"environment", "ref"}
	one := []string{"environment", "digest"}
	return slices.Concat([]route{
		{Route{get, wire.OpenAPIPath, read, false, "This document", nil}, server.openAPI},
		{Route{get, wire.EnvironmentsPath, read, true, "The chain of environments with policies and trust", nil}, server.environments},
		{Route{get, wire.HeadsPath, read, true, "Heads by model and environment; limit counts models", paged("environment", "model")}, server.heads},
		{Route{get, wire.ModelListPath, read, true, "Models that have a head, with their heads", paged("environment")}, server.models},
		{Route{get, wire.TargetsPath, read, true, "The targets of the engines at heads; limit counts models", paged("environment")}, server.targets},
		{Route{get, wire.HistoryPath, read, true, "Events, oldest first", paged("environment", "model", "kind", "subject", "signer", "principal", "after", "before", "order")}, server.history},
		{Route{get, wire.VerificationPath, read, false, "Check the hash chain of the whole history, and that it explains every head", nil}, server.verification},
		{Route{get, wire.RestrictionsPath, read, true, "The restriction list in force in an environment, with its signed bundle", []string{"environment"}}, server.restrictions},
		{Route{post, wire.RestrictionsPath, registry.PermissionApprove, true, "Put the next restriction list of an environment in force", nil}, server.restrict},
		{Route{get, wire.TrustBundlePath, read, true, "The newest trust bundle: keys, restriction lists and a checkpoint, signed by a publisher", nil}, server.trustBundle},
		{Route{post, wire.TrustBundlePath, registry.PermissionAdminister, true, "Publish the next trust bundle", nil}, server.publishTrust},
		{Route{get, wire.NodeReportsPath, read, true, "What nodes report: which engine of an environment they have; silent=true lists reports that have expired", paged("environment", "model", "silent")}, server.nodeReports},
		{Route{post, wire.NodeReportsPath, read, true, "Report that a node has an engine; a later report of the same caller about the node replaces it", nil}, server.reportNode},
		{Route{get, wire.CheckpointPath, read, false, "A signed checkpoint of the whole history (C2SP tlog-checkpoint)", nil}, server.checkpoint},
		{Route{get, wire.CheckpointsPath, read, false, "The signed checkpoints that were made, by size", paged("after")}, server.checkpoints},
		{Route{get, wire.ProofsPath + "{seq}", read, true, "A proof that a checkpoint covers an event (C2SP tlog-proof)", nil}, server.proof},
		{Route{get, wire.EventsPath, read, true, "Events as they happen, as a stream", eventsQuery()}, server.events},
		{Route{get, wire.PromotionsPath + "{seq}", read, true, "A promotion by the number of its event", nil}, server.promotion},

		{Route{get, modelPrefix + wire.OpResolve, read, true, "The engine for a node type, or for a node whose facts are in the query", resolveQuery()}, server.resolveFacts},
		{Route{post, modelPrefix + wire.OpResolve, read, true, "The engine for a node, or for the labels of a Kubernetes node", nil}, server.resolveNode},
		{Route{get, modelPrefix + wire.OpReleases, read, true, "The releases of an environment by tag", paged("environment")}, server.releases},
		{Route{get, modelPrefix + wire.OpRelease, read, true, "A release by tag or digest, or the head", about}, server.release},
		{Route{get, modelPrefix + wire.OpEngines, read, true, "The engines of a release", about}, server.engines},
		{Route{get, modelPrefix + wire.OpEngine, read, true, "An engine by digest", one}, server.engine},
		{Route{get, modelPrefix + wire.OpEvidence, read, true, "The evidence for a release and its engines: verified and ignored", about}, server.evidence},
		{Route{get, modelPrefix + wire.OpQuarantines, read, true, "The quarantines of a release and its engines that are not lifted", about}, server.quarantines},
		{Route{get, modelPrefix + wire.OpComparison, read, true, "What differs between two releases, each in the last environment that has it", []string{"from", "to"}}, server.comparison},
		{Route{get, modelPrefix + wire.OpBundle, read, true, "The bytes of one piece of evidence", one}, server.bundle},
		{Route{post, modelPrefix + wire.OpEvidence, verify, true, "Attach signed evidence: reports, approvals, quarantines and their lifts", nil}, server.attach},
		{Route{post, modelPrefix + wire.OpAttestations, registry.PermissionAttest, true, "Have the service sign an approval, its withdrawal or a quarantine in the caller's name", nil}, server.attest},
		{Route{post, modelPrefix + wire.OpPublications, push, true, "Move the first environment's head to a release that was built there", nil}, server.publish},
		{Route{get, modelPrefix + wire.OpPromotions, read, true, "The promotions of a model, newest first", paged("environment")}, server.promotions},
		{Route{get, modelPrefix + wire.OpPromotionCheck, read, true, "Whether a release may be promoted to an environment now, and why not", []string{"environment", "version", "digest"}}, server.promotionCheck},
		{Route{post, modelPrefix + wire.OpPromotions, promote, true, "Promote a release to the next environment", nil}, server.promote},
		{Route{post, modelPrefix + wire.OpRollbacks, promote, true, "Move an environment back to an earlier head", nil}, server.rollback},
		{Route{post, modelPrefix + wire.OpHolds, promote, true, "Stop promotions from moving a head", nil}, server.setHold},
		{Route{post, modelPrefix + wire.OpHoldReleases, promote, true, "Let promotions move a held head again", nil}, server.releaseHold},
		{Route{post, modelPrefix + wire.OpAcceptances, registry.PermissionAdminister, true, "Accept what the history does not explain, so that promotions continue", nil}, server.acceptHistory},
	},
		tableRoutes(wire.NodeTypesPath, "node type", nodeTypes),
		tableRoutes(wire.RuntimesPath, "runtime", runtimes),
		webhookRoutes(),
		tokenRoutes(),
		configurationRoutes(),
		operationsRoutes(),
	)
}

// once reports whether requests with the same idempotency key are executed once: every POST
// that changes something.
func (r route) once() bool {
	return r.Method == http.MethodPost && r.Permission != registry.PermissionRead
}

// key identifies a route.
func (r Route) key() string { return r.Method + " " + r.Pattern }

// isPossible reports whether the caller has the permission of a route for any model. Without access control,
// there is no caller. Evidence needs the permission of the role that signed it.
func (r route) isPossible(ctx context.Context) bool {
	caller, ok := registry.PrincipalOf(ctx)
	if !ok {
		return true
	}
	wanted := []registry.Permission{r.Permission}
	if r.Pattern == modelPrefix+wire.OpEvidence && r.Method == http.MethodPost {
		wanted = slices.DeleteFunc(registry.Permissions(), func(p registry.Permission) bool { return p == registry.PermissionRead })
	}
	return slices.ContainsFunc(wanted, caller.MayAnywhere)
}

// validate refuses a route without a permission and an incomplete one.
func (r route) validate() error {
	switch {
	case r.Permission == "":
		return registry.Errorf(registry.CodeInvalid, "server: route %s %s has no permission", r.Method, r.Pattern)
	case r.handle == nil || r.Method == "" || !strings.HasPrefix(r.Pattern, wire.Prefix+"/"):
		return registry.Errorf(registry.CodeInvalid, "server: route %q %q is incomplete", r.Method, r.Pattern)
	}
	return nil
}

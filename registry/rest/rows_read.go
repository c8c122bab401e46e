package rest

import (
	"context"
	"net/http"

	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/restriction"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
)

// The operations that read environments and their content.
var (
	// Environments is allowed to every principal with a grant, because every command needs it.
	Environments = &Operation[None, policy.Environments]{
		Row: Row{
			Name: "environments", Method: get, Path: EnvironmentsPath, Summary: "The chain of environments with policies and trust", Tag: "environments",
			Kind: Reads, Permission: read, Rule: WithAnyGrant, Examples: []Example{one("all")},
		},
		Do: func(ctx context.Context, r api.Interface, _ None) (policy.Environments, error) {
			return r.Environments(ctx)
		},
		Check: func(_ None, a policy.Environments) (string, error) { return "environments", a.Validate() },
	}
	Heads = &Operation[HeadsQuery, []history.Head]{
		Row: Row{
			Name: "heads", Method: get, Path: HeadsPath, Summary: "Heads by model and environment; limit counts models", Tag: "environments",
			Kind: Reads, Permission: read, Rule: AmongReadable,
			Examples: []Example{one("all"), one("of an environment", "environment", "prod", "limit", "10"), one("of a model", "model", exampleModel)},
		},
		At:       func(q HeadsQuery) (string, string) { return q.Environment, q.Model },
		Readable: readableHeads,
		Do: func(ctx context.Context, r api.Interface, q HeadsQuery) ([]history.Head, error) {
			return r.Heads(ctx, q.Environment, q.Model)
		},
	}
	Models = &Operation[ModelsQuery, storage.Page[history.ModelHeads]]{
		Row: Row{
			Name: "models", Method: get, Path: ModelListPath, Summary: "Models that have a head, with their heads", Tag: "models",
			Kind: Reads, Permission: read, Rule: AmongReadable,
			Examples: []Example{one("all"), one("page", "limit", "1"), one("of an environment", "environment", "prod")},
		},
		At:       func(q ModelsQuery) (string, string) { return q.Environment, "" },
		Readable: readableModels,
		Do: func(ctx context.Context, r api.Interface, q ModelsQuery) (storage.Page[history.ModelHeads], error) {
			return r.Models(ctx, q.Environment, q.Cursor, q.Limit)
		},
	}
	Targets = &Operation[ModelsQuery, storage.Page[TargetUse]]{Row: Row{
		Name: "targets", Method: get, Path: TargetsPath, Summary: "The targets of the engines at heads; limit counts models", Tag: "models",
		Kind: Reads, Permission: read, Examples: []Example{one("all"), one("of an environment", "environment", "prod")},
	}}
	// Resolve is carried out by the configuration of every environment, which also decides which are protected.
	Resolve = &Operation[api.ResolveQuery, api.Resolution]{
		Row: Row{
			Name: "resolve", Method: post, Path: at(OpResolve), Summary: "The engine for a node, or for the labels of a Kubernetes node", Tag: "resolve",
			Kind: Decides, Permission: read, Traced: true, Limit: documentBody, Form: ResolveRequest{}, Answer: api.Resolution{}, Media: "text/plain", Problems: []int{http.StatusConflict},
			Examples: []Example{
				with("node", ResolveRequest{Environment: "prod", Node: &exampleNode}, "model", exampleModel),
				with("node type", ResolveRequest{Environment: "prod", NodeType: "g6.xlarge", RuntimeName: "registry.example/serving/onnx:26.1"}, "model", exampleModel),
				with("kubernetes labels", ResolveRequest{
					Environment: "prod", Runtime: &exampleRuntime,
					Labels: map[string]string{"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "feature.node.kubernetes.io/cpu-cpuid.X86_64_V3": "true"},
				}, "model", exampleModel),
			},
		},
		At: func(q api.ResolveQuery) (string, string) { return q.Environment, q.Model },
		Do: func(ctx context.Context, r api.Interface, q api.ResolveQuery) (api.Resolution, error) {
			return r.Resolve(ctx, q)
		},
	}
	ResolveFacts = &Operation[FactsQuery, api.Resolution]{Row: Row{
		Name: "resolveFacts", Method: get, Path: at(OpResolve), Summary: "The engine for a node type, or for a node whose facts are in the query", Tag: "resolve",
		Kind: Decides, Permission: read, Answer: api.Resolution{}, Media: "text/plain", Problems: []int{http.StatusConflict},
		Examples: []Example{
			one("by node type", "model", exampleModel, "environment", "prod", "nodeType", "g6.xlarge"),
			one("by facts", "model", exampleModel, "environment", "prod", "arch", "amd64", "level", "v3", "features", "avx2,avx512_vnni", "runtime", "onnxruntime:1.30.0"),
			one("with accelerators", "model", exampleModel, "environment", "staging", "version", "1.0.0", "variant", "fp32", "os", "linux", "arch", "amd64", "level", "v3", "memoryMiB", "64000", "gpuVendor", "nvidia",
				"gpuProduct", "NVIDIA-L4", "gpuArch", "sm_89", "gpuMemoryMiB", "23034", "gpuDriver", "580.65", "gpuCount", "2", "runtime", "onnxruntime:1.30.0"),
			one("as image", "model", exampleModel, "environment", "prod", "nodeType", "g6.xlarge", "as", "image"),
			one("by serving image", "model", exampleModel, "environment", "prod", "nodeType", "g6.xlarge", "runtime", "registry.example/serving/onnx:26.1"),
		},
	}}
	// Restrictions is allowed to every principal that may read a model in the environment, because what is restricted there
	// concerns each. The configuration decides who is an approver.
	Restrictions = &Operation[EnvironmentQuery, restriction.SignedRestrictions]{
		Row: Row{
			Name: "restrictions", Method: get, Path: RestrictionsPath, Summary: "The restriction list in force in an environment, with its signed bundle", Tag: "environments",
			Kind: Decides, Permission: read, Rule: InEnvironment, Examples: []Example{one("of an environment", "environment", "prod")},
		},
		At: func(q EnvironmentQuery) (string, string) { return q.Environment, "" },
		Do: func(ctx context.Context, r api.Interface, q EnvironmentQuery) (restriction.SignedRestrictions, error) {
			return r.Restrictions(ctx, q.Environment)
		},
		Check: func(q EnvironmentQuery, a restriction.SignedRestrictions) (string, error) {
			return "restrictions", checkRestrictions(q.Environment, a)
		},
	}
	// NewestTrust is allowed to every principal with a grant, as Environments is. The bundle says itself by which
	// configuration it was made.
	NewestTrust = &Operation[None, trust.SignedTrust]{
		Row: Row{
			Name: "trustBundle", Method: get, Path: TrustBundlePath, Summary: "The newest trust bundle: keys, restriction lists and a checkpoint, signed by a publisher", Tag: "environments",
			Kind: Reads, Permission: read, Rule: WithAnyGrant, Examples: []Example{one("the newest")},
		},
		Do: func(ctx context.Context, r api.Interface, _ None) (trust.SignedTrust, error) {
			return r.TrustBundle(ctx)
		},
		Check: func(_ None, a trust.SignedTrust) (string, error) { return "trust bundle", checkTrust(a) },
	}
)

// The operations that read the history.
var (
	History = &Operation[history.HistoryQuery, []history.Event]{
		Row: Row{
			Name: "history", Method: get, Path: HistoryPath, Summary: "Events, oldest first", Tag: "history",
			Kind: Reads, Permission: read, Rule: AmongReadable, Form: HistoryForm{},
			Examples: []Example{
				one("all"), one("newest promotions", "kind", "promote", "order", "desc", "limit", "5"), one("of a model", "environment", "prod", "model", exampleModel, "after", "1", "before", "1000"),
				one("about an engine", "subject", exampleEngine), one("of a key", "signer", exampleSigner), one("of a caller", "principal", "token:ci"),
			},
		},
		At:       func(q history.HistoryQuery) (string, string) { return q.Environment, q.Model },
		Readable: readableHistory,
		Do: func(ctx context.Context, r api.Interface, q history.HistoryQuery) ([]history.Event, error) {
			return r.History(ctx, q)
		},
	}
	HistoryFaults = &Operation[None, []history.HistoryFault]{
		Row: Row{
			Name: "verifyHistory", Method: get, Path: VerificationPath, Summary: "Check the hash chain of the whole history, and that it explains every head", Tag: "history",
			Kind: Reads, Permission: read, Rule: AmongReadable, Whole: true, Answer: Verification{}, Examples: []Example{one("all")},
		},
		Readable: readableFaults,
		Do: func(ctx context.Context, r api.Interface, _ None) ([]history.HistoryFault, error) {
			return r.HistoryFaults(ctx)
		},
	}
	Checkpoint = &Operation[None, []byte]{Row: Row{
		Name: "checkpoint", Method: get, Path: CheckpointPath, Summary: "A signed checkpoint of the whole history (C2SP tlog-checkpoint)", Tag: "history",
		Kind: Reads, Permission: read, Whole: true, Media: "text/plain", Problems: []int{http.StatusUnprocessableEntity}, Examples: []Example{one("now")},
	}}
	Checkpoints = &Operation[AfterQuery, []trust.KeptCheckpoint]{Row: Row{
		Name: "checkpoints", Method: get, Path: CheckpointsPath, Summary: "The signed checkpoints that were made, by size", Tag: "history",
		Kind: Reads, Permission: read, Whole: true, Examples: []Example{one("all"), one("page", "after", "100", "limit", "10")},
	}}
	Proof = &Operation[EventQuery, []byte]{Row: Row{
		Name: "proof", Method: get, Path: ProofsPath + "{seq}", Summary: "A proof that a checkpoint covers an event (C2SP tlog-proof)", Tag: "history",
		Kind: Reads, Permission: read, Media: "text/plain", Problems: []int{http.StatusUnprocessableEntity}, Examples: []Example{one("one", "seq", "1")},
	}}
	Events = &Operation[EventsQuery, None]{Row: Row{
		Name: "events", Method: get, Path: EventsPath, Summary: "Events as they happen, as a stream", Tag: "history",
		Kind: Reads, Permission: read, Media: StreamType,
		Examples: []Example{one("from the beginning", "after", "0"), one("go on", "Last-Event-ID", "2", "environment", "prod", "kind", "promote", "model", exampleModel)},
	}}
	PromotionEvent = &Operation[EventQuery, history.Event]{Row: Row{
		Name: "promotion", Method: get, Path: PromotionsPath + "{seq}", Summary: "A promotion by the number of its event", Tag: "promotions",
		Kind: Reads, Permission: read, Examples: []Example{one("one", "seq", examplePromotion)},
	}}
	Promotions = &Operation[PromotionsQuery, []history.Event]{Row: Row{
		Name: "promotions", Method: get, Path: at(OpPromotions), Summary: "The promotions of a model, newest first", Tag: "promotions",
		Kind: Reads, Permission: read, Examples: []Example{one("all", "model", exampleModel), one("of an environment", "model", exampleModel, "environment", "prod", "limit", "5")},
	}}
	AskPromotion = &Operation[api.PromotionQuery, api.PromotionCheck]{
		Row: Row{
			Name: "promotionCheck", Method: get, Path: at(OpPromotionCheck), Summary: "Whether a release may be promoted to an environment now, and why not", Tag: "promotions",
			Kind: Decides, Permission: read, Problems: []int{http.StatusConflict, http.StatusUnprocessableEntity},
			Examples: []Example{
				one("a version", "model", exampleModel, "environment", "prod", "version", "1.0.0"), one("a digest", "model", exampleModel, "environment", "prod", "digest", exampleRelease),
				one("a version with its digest", "model", exampleModel, "environment", "prod", "version", "1.0.0", "digest", exampleRelease),
			},
		},
		Check: checkPromotionCheck,
	}
)

// The operations that read releases.
var (
	Releases = &Operation[ReleasesQuery, storage.Page[storage.TaggedRelease]]{
		Row: Row{
			Name: "releases", Method: get, Path: at(OpReleases), Summary: "The releases of an environment by tag", Tag: "releases",
			Kind: Reads, Permission: read, Examples: []Example{one("all", "model", exampleModel, "environment", "staging", "limit", "100")},
		},
		At: func(q ReleasesQuery) (string, string) { return q.Environment, q.Model },
		Do: func(ctx context.Context, r api.Interface, q ReleasesQuery) (storage.Page[storage.TaggedRelease], error) {
			return r.Releases(ctx, q.Environment, q.Model, q.Cursor, q.Limit)
		},
	}
	Release = &Operation[ReleaseQuery, artifact.Release]{
		Row: Row{
			Name: "release", Method: get, Path: at(OpRelease), Summary: "A release by tag or digest, or the head", Tag: "releases",
			Kind: Reads, Permission: read, Problems: []int{http.StatusUnprocessableEntity}, Examples: exampleReleases(),
		},
		At: func(q ReleaseQuery) (string, string) { return q.Environment, q.Model },
		Do: func(ctx context.Context, r api.Interface, q ReleaseQuery) (artifact.Release, error) {
			return r.Release(ctx, q.Environment, q.Model, q.Ref)
		},
	}
	Engines = &Operation[ReleaseQuery, []artifact.Engine]{Row: Row{
		Name: "engines", Method: get, Path: at(OpEngines), Summary: "The engines of a release", Tag: "releases",
		Kind: Reads, Permission: read, Problems: []int{http.StatusUnprocessableEntity}, Examples: exampleReleases(),
	}}
	Engine = &Operation[DigestQuery, artifact.Engine]{
		Row: Row{
			Name: "engine", Method: get, Path: at(OpEngine), Summary: "An engine by digest", Tag: "releases",
			Kind: Reads, Permission: read, Problems: []int{http.StatusUnprocessableEntity},
			Examples: []Example{one("by digest", "model", exampleModel, "environment", "prod", "digest", exampleEngine)},
		},
		At: func(q DigestQuery) (string, string) { return q.Environment, q.Model },
		Do: func(ctx context.Context, r api.Interface, q DigestQuery) (artifact.Engine, error) {
			return r.Engine(ctx, q.Environment, q.Model, q.Digest)
		},
	}
	Evidence = &Operation[ClaimsQuery, Claims]{
		Row: Row{
			Name: "evidence", Method: get, Path: at(OpEvidence), Summary: "The evidence for a release and its engines: verified and ignored", Tag: "evidence",
			Kind: Reads, Permission: read, Form: ReleaseQuery{}, Problems: []int{http.StatusUnprocessableEntity}, Examples: exampleReleases(),
		},
		At: func(q ClaimsQuery) (string, string) { return q.Environment, q.Release.Model },
		Do: func(ctx context.Context, r api.Interface, q ClaimsQuery) (Claims, error) {
			claims, ignored, err := r.Claims(ctx, q.Environment, q.Release)
			return Claims{claims, ignored.Ignored, ignored.IgnoredCount}, err
		},
	}
	Quarantines = &Operation[ReleaseQuery, []Quarantine]{Row: Row{
		Name: "quarantines", Method: get, Path: at(OpQuarantines), Summary: "The quarantines of a release and its engines that are not lifted", Tag: "evidence",
		Kind: Reads, Permission: read, Problems: []int{http.StatusUnprocessableEntity}, Examples: exampleReleases(),
	}}
	Comparison = &Operation[ComparisonQuery, api.ReleaseComparison]{Row: Row{
		Name: "comparison", Method: get, Path: at(OpComparison), Summary: "What differs between two releases, each in the last environment that has it", Tag: "releases",
		Kind: Reads, Permission: read, Problems: []int{http.StatusUnprocessableEntity},
		Examples: []Example{one("with itself", "model", exampleModel, "from", exampleRelease, "to", exampleRelease)},
	}}
	Bundle = &Operation[DigestQuery, evidence.Bundle]{
		Row: Row{
			Name: "bundle", Method: get, Path: at(OpBundle), Summary: "The bytes of one piece of evidence", Tag: "evidence",
			Kind: Reads, Permission: read, Media: BundleType, Problems: []int{http.StatusUnprocessableEntity},
			Examples: []Example{one("by digest", "model", exampleModel, "environment", "staging", "digest", exampleBundle)},
		},
		At: func(q DigestQuery) (string, string) { return q.Environment, q.Model },
		Do: func(ctx context.Context, r api.Interface, q DigestQuery) (evidence.Bundle, error) {
			return r.Bundle(ctx, q.Environment, q.Model, q.Digest)
		},
	}
)

package rest

import (
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// The paths of the API. The path of a model's operation is ModelsPath, the model's name and the
// operation. A model's name can have slashes and components named like operations, so the
// operation is always the last component. All other input is in the query or body.
const (
	Prefix            = "/api/v1"
	EnvironmentsPath  = Prefix + "/environments"
	HeadsPath         = Prefix + "/heads"
	HistoryPath       = Prefix + "/history"
	VerificationPath  = HistoryPath + "/verification"
	CheckpointPath    = HistoryPath + "/checkpoint"  // of all events
	CheckpointsPath   = HistoryPath + "/checkpoints" // that were made
	TrustBundlePath   = Prefix + "/trust-bundle"     // the newest
	ProofsPath        = HistoryPath + "/proofs/"     // and the number of the event
	PromotionsPath    = Prefix + "/promotions/"      // and the number of the event
	TargetsPath       = Prefix + "/targets"
	NodeTypesPath     = Prefix + "/node-types"   // and a name
	RuntimesPath      = Prefix + "/runtimes"     // and a name
	NodeReportsPath   = Prefix + "/node-reports" // ?environment=&model=&silent=
	EventsPath        = Prefix + "/events"
	WebhooksPath      = Prefix + "/webhooks" // and an identifier
	TokensPath        = Prefix + "/tokens"   // and an identifier
	ConfigurationPath = Prefix + "/configuration"
	OperationsPath    = Prefix + "/operations"
	RestrictionsPath  = Prefix + "/restrictions" // ?environment=
	OpenAPIPath       = Prefix + "/openapi.json"
	ModelListPath     = Prefix + "/models"
	ModelsPath        = ModelListPath + "/"

	OpResolve        = "resolve"
	OpReleases       = "releases"   // ?environment=
	OpRelease        = "release"    // ?environment=&ref=: tag or digest; absent: the head
	OpEngines        = "engines"    // ?environment=&ref=
	OpEngine         = "engine"     // ?environment=&digest=
	OpComparison     = "comparison" // ?from=&to=
	OpBundle         = "bundle"     // ?environment=&digest=
	OpPublications   = "publications"
	OpEvidence       = "evidence"    // ?environment=&ref=
	OpQuarantines    = "quarantines" // ?environment=&ref=
	OpPromotions     = "promotions"
	OpPromotionCheck = "promotion-check" // ?environment=&version=&digest=
	OpRollbacks      = "rollbacks"
	OpHolds          = "holds"
	OpAttestations   = "attestations"
	OpHoldReleases   = "hold-releases"
	OpAcceptances    = "history-acceptances"
)

// Partial is the header of a list that leaves out items that the caller may not read. Its value is "true".
const Partial = "Mlpromote-Partial"

// IdempotencyKey is the header that makes a service execute repeated POST requests once.
const IdempotencyKey = "Idempotency-Key"

// NoteType is the media type of a signed checkpoint and of a proof, which are text.
const NoteType = "text/plain; charset=utf-8"

// BundleType is the media type of a bundle's bytes.
const BundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"

// MaxBody limits a request or response body. A bundle and its per-case figures have at most 4 MiB each,
// and base64 adds a third.
const MaxBody = 12 << 20

// ModelPath returns the path of an operation on a model. Errors: CodeNotFound for an invalid
// model name, which could lead to another path.
func ModelPath(model, operation string) (string, error) {
	if err := registry.ValidateModel(model); err != nil {
		return "", registry.Errorf(registry.CodeNotFound, "no such model: %s", err.Error())
	}
	return ModelsPath + model + "/" + operation, nil
}

// ParseModelPath parses an unescaped path below ModelsPath. Errors: CodeNotFound.
func ParseModelPath(path string) (model, operation string, err error) {
	rest, below := strings.CutPrefix(path, ModelsPath)
	slash := strings.LastIndexByte(rest, '/')
	if !below || slash < 0 || registry.ValidateModel(rest[:slash]) != nil {
		return "", "", registry.Errorf(registry.CodeNotFound, "no resource %s", path)
	}
	return rest[:slash], rest[slash+1:], nil
}

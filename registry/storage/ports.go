package storage

import (
	"context"
	"io"
	"iter"
	"os"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
)

// Blobs stores bytes by digest, shared by all repositories. Implementations are safe for
// concurrent use, also by several processes. All methods return CodeInvalid for a digest that
// is malformed or uses an algorithm other than sha256 and sha512.
type Blobs interface {
	// Put stores the bytes of r under d; they are durable on return. If d is already stored, Put
	// succeeds without reading more of r than it must. Stored bytes that are damaged do not count:
	// Put replaces them if their number is wrong, or if there are at most [CheckedBytes]. Errors:
	// CodeDigest if the bytes do not match d and size; then it stores nothing.
	Put(ctx context.Context, d registry.Digest, size int64, r io.Reader) error
	// Open returns the content of d and its size. It does not verify the digest; callers that rely
	// on the bytes must. The caller closes the Blob. Errors: CodeNotFound.
	Open(ctx context.Context, d registry.Digest) (Blob, int64, error)
	// Delete deletes d. It succeeds if d is not stored.
	Delete(ctx context.Context, d registry.Digest) error
	// Digests lists every stored digest, in any order. An error ends the sequence.
	Digests(ctx context.Context) iter.Seq2[registry.Digest, error]
}

// CheckedBytes is the size up to which stored content is compared with its digest before it
// counts as stored. That covers manifests, reports and signatures, without which large content is
// useless.
const CheckedBytes = 1 << 20

// RepairableBlobs are Blobs that can replace damaged bytes of any size.
type RepairableBlobs interface {
	Blobs
	// Replace is Put, whatever is stored under d. Readers get the earlier bytes or the new ones.
	Replace(ctx context.Context, d registry.Digest, size int64, r io.Reader) error
}

// Blob is open content.
type Blob interface {
	io.ReadCloser
	io.ReaderAt
	io.Seeker
}

// Manifest is the record of a manifest or index in a repository. Its bytes are in Blobs.
type Manifest struct {
	Digest    registry.Digest
	MediaType string
	Size      int64
	// Pusher is the principal that first pushed it to the registry endpoint. It is empty for
	// manifests that the service made.
	Pusher  string
	Derived artifact.Derived
}

// Members records which blobs belong to each repository. A blob can be read only through a
// repository that it belongs to. Reading and adding a blob unmarks it ([GCStore]).
type Members interface {
	// AddBlob makes d, of size bytes, belong to the repository. It succeeds if d already does.
	AddBlob(ctx context.Context, repository string, d registry.Digest, size int64) error
	// AddUploaded ends an upload that brought d in one request and makes d belong to its repository,
	// atomically, and reports whether it did. It does nothing if there is no such upload of the
	// owner, or if [UploadStates.SwapUpload] has changed it: then it may have bytes in the storage.
	AddUploaded(ctx context.Context, owner UploadOwner, id string, d registry.Digest, size int64) (added bool, err error)
	// Blob returns the size of a blob of the repository. Errors: CodeNotFound.
	Blob(ctx context.Context, repository string, d registry.Digest) (int64, error)
}

// Manifests records the manifests of each repository and their referrers. Manifest and
// PutManifest unmark the manifest ([GCStore]).
type Manifests interface {
	// PutManifest records m and sets the tags to it, atomically. If m is already recorded, only
	// its derived fields are replaced.
	PutManifest(ctx context.Context, repository string, m Manifest, tags ...string) error
	// Manifest returns the record of d. Errors: CodeNotFound.
	Manifest(ctx context.Context, repository string, d registry.Digest) (Manifest, error)
	// Referrers lists a page of manifests whose subject is d, in order of digest, after a digest
	// ("" for the first page). A page ends at [ReferrerPage] bytes of annotations and has at least
	// one manifest. An empty page means the end. An empty artifactType means all.
	Referrers(ctx context.Context, repository string, d registry.Digest, artifactType string, after registry.Digest) ([]Manifest, error)
	// ListRepositories lists up to limit (at least 1) names of repositories that have manifests, after a name
	// (exclusive, "" for the first), in byte order. All begin with prefix. A page costs one lookup per name, however
	// much a repository holds.
	ListRepositories(ctx context.Context, prefix, after string, limit int) ([]string, error)
	// AllManifests lists every record of every repository, by repository and digest.
	AllManifests(ctx context.Context) iter.Seq2[RepositoryManifest, error]
}

// ReferrerCounts counts referrers by the principal that pushed them.
type ReferrerCounts interface {
	// CountReferrers counts the manifests whose subject is d that a principal pushed first.
	CountReferrers(ctx context.Context, repository string, d registry.Digest, pusher string) (int, error)
}

// ReferrerPage is the approximate maximum of bytes of annotations in a page of referrers. It
// bounds pages because anyone who may push can make annotations long.
const ReferrerPage = 1 << 20

// AllReferrers lists the manifests whose subject is d, by digest, page by page. An error ends
// the sequence.
func AllReferrers(
	ctx context.Context,
	m Manifests,
	repository string,
	d registry.Digest,
	artifactType string,
) iter.Seq2[Manifest, error] {
	return func(yield func(Manifest, error) bool) {
		for after := registry.Digest(""); ; {
			page, err := m.Referrers(ctx, repository, d, artifactType, after)
			if err != nil {
				yield(Manifest{}, err)
				return
			}
			if len(page) == 0 {
				return
			}
			for _, manifest := range page {
				if !yield(manifest, nil) {
					return
				}
			}
			after = page[len(page)-1].Digest
		}
	}
}

// RepositoryManifest is a manifest with the repository that holds it.
type RepositoryManifest struct {
	Repository string
	Manifest   Manifest
}

// Tags records the tags of each repository.
type Tags interface {
	// Tag returns the digest that a tag names. Errors: CodeNotFound.
	Tag(ctx context.Context, repository, tag string) (registry.Digest, error)
	// SetTag sets a tag to a digest. Errors: CodeNotFound if the manifest is not recorded.
	SetTag(ctx context.Context, repository, tag string, d registry.Digest) error
	// ListTags lists up to limit tags after a tag (exclusive, "" for the first), in byte order. A
	// limit of 0 means all.
	ListTags(ctx context.Context, repository, after string, limit int) ([]string, error)
}

// Deleter deletes records. The bytes stay until garbage collection.
type Deleter interface {
	// DeleteManifest deletes the record of d, its tags and its derived data. Errors: CodeNotFound.
	DeleteManifest(ctx context.Context, repository string, d registry.Digest) error
	// DeleteTag deletes only a tag. Errors: CodeNotFound.
	DeleteTag(ctx context.Context, repository, tag string) error
	// RemoveBlob removes d from the repository. Errors: CodeNotFound.
	RemoveBlob(ctx context.Context, repository string, d registry.Digest) error
}

// RepositoryRecords records the content of repositories: blobs, manifests and tags. Implementations are safe
// for concurrent use, also by several processes. Writes are durable on return.
type RepositoryRecords interface {
	Members
	Manifests
	Tags
}

// Catalog stores heads and history. It stores facts and makes no decisions. Implementations are
// safe for concurrent use, also by several processes.
type Catalog interface {
	Latest
	evidence.AdverseEvidences
	// Head returns the head of a model in an environment. Errors: CodeNotFound.
	Head(ctx context.Context, environment, model string) (history.Head, error)
	// Heads lists heads by environment and model. Empty arguments mean all.
	Heads(ctx context.Context, environment, model string) ([]history.Head, error)
	// ModelState returns the state of a model in an environment at one instant. An unknown
	// model or environment is not an error.
	ModelState(ctx context.Context, environment, model string) (history.ModelState, error)
	// Apply applies a change in one transaction, durable on return, and returns the event with its
	// place in the chain. If the head is already at the release, it keeps its time. Apply counts
	// events that restrict. Errors: CodeInvalid for a move without a release or a basis.
	// CodeConflict, with the catalog unchanged, if the basis has changed ([history.BasisOutdated]), a
	// needed manifest is not recorded, or an immutable tag names another digest.
	Apply(ctx context.Context, c Change) (history.Event, error)
	// History lists events in order of sequence.
	History(ctx context.Context, q history.HistoryQuery) iter.Seq2[history.Event, error]
}

// Latest tells a cache whether its entry is still current.
type Latest interface {
	// LastEvent returns the hash of the newest event of a model in an environment, or "" if there
	// are no events. An empty model means events of the environment that have no model. It costs one
	// lookup by key.
	LastEvent(ctx context.Context, environment, model string) (registry.Digest, error)
	// AdverseChanges counts the changes that kept adverse evidence about a model, in any environment. It costs one
	// lookup by key.
	AdverseChanges(ctx context.Context, model string) (int64, error)
}

// Listing pages through names by key, so that every page costs the same. A limit is at least 1.
// Names are in byte order.
type Listing interface {
	// ModelPage lists the heads of up to limit models after a model (exclusive, "" for the first),
	// by model and environment. An empty environment means all.
	ModelPage(ctx context.Context, environment, after string, limit int) ([]history.Head, error)
	// TagPage lists up to limit tags after a tag, of manifests with the artifact type.
	TagPage(ctx context.Context, repository, artifactType, after string, limit int) ([]Tagged, error)
}

// Tagged is a tag and the digest that it names.
type Tagged struct {
	Tag    string
	Digest registry.Digest
}

// Intents records promotions that have begun and are not finished.
type Intents interface {
	// Begin records an intent that begins now, by the clock of the catalog. It replaces an earlier
	// intent of the same destination and model.
	Begin(ctx context.Context, i history.Intent) error
	// Pending lists the intents that have not ended.
	Pending(ctx context.Context) ([]history.Intent, error)
	// End deletes the intent of a destination and model if it is for that release. Call it after
	// the work that follows the move of the head. It succeeds if there is no such intent.
	End(ctx context.Context, environment, model string, release registry.Digest) error
	// Abandon deletes an intent that [Intents.Pending] returned, unless it has begun again since then or
	// its head is at its release. It succeeds if there is no such intent.
	Abandon(ctx context.Context, i history.Intent) error
}

// Change is one transaction of the catalog.
type Change struct {
	Event         history.Event          // Apply sets its place in the chain
	DecisionBasis *history.DecisionBasis // the state that the change rests on; nil for events that do not move a head
	Move          *HeadMove              // nil: the event does not move a head
	Tags          []TagMove
	// Adds are manifests to record. Their bytes must be stored already. A manifest that is already
	// recorded keeps what PutManifest keeps.
	Adds []RepositoryManifest
	// Keeps is evidence of the event that the catalog keeps as bytes. A row that is there already is written again.
	Keeps []evidence.AdverseEvidence
	// Needs are manifests that must still be recorded when the change is applied, because they
	// could be collected after they were read. Apply unmarks them ([GCStore]).
	Needs []ManifestPlace
	// EndIntent deletes the intent of the event's environment and model, if it is for the event's
	// release.
	EndIntent bool
	// Configure replaces the agreed configuration; nil keeps it. Apply returns CodeConflict if the
	// agreed configuration is not the expected one.
	Configure *history.ConfigurationMove
}

// HeadMove moves the head of the event's environment and model to Event.Release, if the basis
// of the change has not changed.
type HeadMove struct {
	Hold string // the hold of the new head; empty: not held
}

// ManifestPlace is a manifest in a repository.
type ManifestPlace struct {
	Repository string
	Digest     registry.Digest
}

// TagMove sets a tag in the change's transaction.
type TagMove struct {
	Repository string
	Tag        string
	Digest     registry.Digest
	Immutable  bool // conflict if the tag names another digest
}

// EvidenceStore stores evidence with its subject.
type EvidenceStore interface {
	// Evidence returns the bundles that are attached to a subject. Manifests with the same
	// document follow one another, the smallest first, and the document is read once.
	// Referrers that are not bundles are skipped. The bytes of bundles that are being read
	// are bounded; a bundle counts until the next one is read, so do not read other evidence
	// inside the loop. An error ends the sequence: CodeDigest if stored bytes do not match
	// their digest.
	Evidence(ctx context.Context, repository string, subject registry.Digest) iter.Seq2[evidence.Bundle, error]
	// PutEvidence stores one bundle for every subject: one blob, and one referrer manifest per
	// subject. It returns the digests of the manifests in the order of the subjects. With CodeConflict, everything is
	// stored up to the last returned one, which the repository does not list.
	PutEvidence(ctx context.Context, repository string, b evidence.Bundle, subjects []artifact.Subject) ([]registry.Digest, error)
	// StageEvidence is PutEvidence for an event that names the evidence. If the catalog records the
	// repository's manifests, it leaves that to the event's change ([Change.Adds]), so that the
	// evidence never exists without its event.
	StageEvidence(ctx context.Context, repository string, b evidence.Bundle, subjects []artifact.Subject) (StagedEvidence, error)
	// Bundle reads one piece of evidence by the digest of its manifest. Errors: CodeNotFound, also
	// if the manifest is not evidence; CodeDigest.
	Bundle(ctx context.Context, repository string, d registry.Digest) (evidence.Bundle, error)
}

// StagedEvidence is a bundle whose bytes are stored.
type StagedEvidence struct {
	Digests   []registry.Digest    // of its manifests, in the order of the subjects
	Manifests [][]byte             // their bytes
	Records   []RepositoryManifest // still to be recorded; none if the repository is not the catalog's
}

// Content reads and copies releases and their evidence. Reads verify every digest; CodeDigest
// means that stored bytes were changed.
type Content interface {
	EvidenceStore
	// Release reads the release that a tag or digest names. The index must repeat the manifest of
	// each engine. Errors: CodeNotFound; CodeInvalid if it is not a release; CodeTrust if index
	// and manifest differ; CodeDigest.
	Release(ctx context.Context, repository, tagOrDigest string) (artifact.Release, error)
	// Engine reads one engine by the digest of its manifest. Errors: CodeNotFound, also if the
	// manifest is not an engine; CodeDigest.
	Engine(ctx context.Context, repository string, d registry.Digest) (artifact.Engine, error)
	// Rehash reads every blob and manifest of the release and verifies its digest.
	Rehash(ctx context.Context, repository string, r artifact.Release) error
	// Copy copies the release and the evidence (bundle manifests) to the destination, and then
	// lists and compares every digest there. It moves no bytes if both repositories share a store.
	// It does not copy sources.
	Copy(ctx context.Context, from, to string, r artifact.Release, evidence []registry.Digest) error
}

// PartStore writes and reads the parts of a release. Build writes them; verify and pull read them.
type PartStore interface {
	// PutPart stores a part in the repository and returns its manifest. Equal parts have equal
	// digests. It does not read files again that are already stored.
	PutPart(ctx context.Context, repository string, p Part) (PartRef, error)
	// Assemble stores the index of a release or of sources. The parts must be stored already.
	Assemble(ctx context.Context, repository string, a Assembly) (registry.Digest, error)
	// Sources reads a sources index. Errors: CodeNotFound; CodeInvalid if it is not a sources
	// index; CodeTrust if index and manifests differ; CodeDigest.
	Sources(ctx context.Context, repository string, d registry.Digest) (Sources, error)
	// Fetch writes the files of a part into the existing directory dir and verifies each digest
	// while writing. It does not sync the files. An empty dir fetches only the description.
	Fetch(ctx context.Context, repository string, part registry.Digest, dir string) (FetchedPart, error)
}

// Lender is [PartStore] that can hard-link its files into a directory.
type Lender interface {
	// Lend is Fetch for callers that only read. Large files in dir can be hard links to the files
	// of the store.
	Lend(ctx context.Context, repository string, part registry.Digest, dir string) (FetchedPart, error)
}

// Settled is a file that is no longer written to. [Blobs] on the same file system can hard-link
// it instead of copying it.
type Settled struct{ *os.File }

// LinkFrom is the size in bytes from which files are linked rather than copied. A changed file
// also changes its links, and smaller files are not worth that risk.
const LinkFrom = 1 << 20

// Part describes a manifest to create. An image has the files of its engine, and the engine with its digest.
type Part struct {
	Role   artifact.PartKind
	Files  []PartFile
	Engine artifact.Engine   // engine, image and reference: target, toolchain and what it was made from
	Model  string            // engine and reference: name in the ModelPack config
	Format string            // engine and reference: "onnx"
	Set    *artifact.CaseSet // cases, golden and calibration
}

// PartFile is a file of a part to create. Open is called only if its blob is not stored yet.
// The caller of Open closes the file.
type PartFile struct {
	artifact.File
	Open func() (io.ReadCloser, error)
}

// PartRef is a part that is stored.
type PartRef struct {
	Role   artifact.PartKind
	Digest registry.Digest
	Size   int64 // bytes of the manifest
}

// Assembly describes an index to create. A release has a Version; sources do not.
type Assembly struct {
	Model    string
	Version  string
	Revision int
	Sources  registry.Digest
	Plan     registry.Digest
	Part     registry.Digest // of a part of a release: see [artifact.Release]
	Parts    []PartRef       // engines in the order in which nodes get them; the others in any order
	Tags     []string        // set in the same transaction; for the repositories of the first environment
}

// Sources lists what a release was built from and is checked against.
type Sources struct {
	Digest registry.Digest
	Model  string
	Parts  map[artifact.PartKind]PartRef // one per role
}

// FetchedPart describes a part that was read.
type FetchedPart struct {
	Role     artifact.PartKind
	Manifest []byte // exact bytes
	Files    []artifact.File
	Engine   artifact.Engine   // engine and reference
	ImageOf  registry.Digest   // image: the engine
	Set      *artifact.CaseSet // cases, golden and calibration
}

// VerifyEvidence verifies the signature of a bundle and returns what its signer may state about
// the resource. The Claim does not have Bundle and Subject yet. Errors: CodeTrust if no trusted
// signer signed it.
type VerifyEvidence func(ctx context.Context, bundle []byte, resource string) (evidence.Claim, error)

// SignEvidence signs a statement in a role and returns a sigstore bundle. Errors:
// CodeUnavailable if this process has no key for the role.
type SignEvidence func(ctx context.Context, role evidence.Role, statement []byte) ([]byte, error)

// Clock returns the time of this process.
type Clock func() time.Time

// CatalogClock returns the time of the catalog. Ages, leases and deadlines that several
// processes compare use this clock, never the clocks of the processes.
type CatalogClock interface {
	CatalogTime(ctx context.Context) (time.Time, error)
}

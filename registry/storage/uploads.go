package storage

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding"
	"fmt"
	"hash"
	"io"
	"iter"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// UploadOwner owns an upload. For others the upload does not exist.
type UploadOwner struct {
	Repository string
	Principal  string // empty if the service does not authenticate callers
}

// Uploads receives blobs in pieces. An upload survives the process that began it; another
// process that shares the storage can continue it.
type Uploads interface {
	Cancellation
	// Begin starts an upload and returns its identifier.
	Begin(ctx context.Context, owner UploadOwner) (id string, err error)
	// Offset returns the number of bytes received. Errors: CodeNotFound.
	Offset(ctx context.Context, owner UploadOwner, id string) (int64, error)
	// Append appends r at offset, which must be the number of bytes received, and returns the new
	// number. If r fails midway, the bytes before the failure count. Errors: CodeNotFound;
	// CodeConflict for another offset, while another Append is running, and if another process
	// continued the upload meanwhile.
	Append(ctx context.Context, owner UploadOwner, id string, offset int64, r io.Reader) (int64, error)
	// Finish stores the upload as blob d, durably, and ends it. It replaces what is stored under d,
	// which may be damaged. Errors: CodeNotFound; CodeConflict
	// as for Append; CodeDigest if the bytes do not match d, which deletes the upload.
	Finish(ctx context.Context, owner UploadOwner, id string, d registry.Digest) (size int64, err error)
}

// Cancellation ends uploads that are not finished.
type Cancellation interface {
	// Cancel ends an upload and deletes its bytes. Errors: CodeNotFound; CodeConflict while an
	// Append is running.
	Cancel(ctx context.Context, owner UploadOwner, id string) error
}

// UploadCounts counts uploads in progress.
type UploadCounts interface {
	// CountUploads counts the uploads of a principal, in all repositories, that were written
	// within the given time, by the clock of the catalog.
	CountUploads(ctx context.Context, principal string, within time.Duration) (int, error)
}

// UploadState is the authoritative progress of an upload. Stored bytes beyond its Offset do not
// count as received.
type UploadState struct {
	ID    string
	Owner UploadOwner
	// Offset is the number of bytes received.
	Offset int64
	// Hash is the sha256 state of those bytes; empty at the beginning.
	Hash []byte
	// Place is where the storage keeps the bytes. Only the storage interprets it.
	Place string
	// Version is 1 for a new upload, and every swap adds 1. [UploadStates] sets it.
	Version int64
	// Touched is when the state was last written, by the clock of the catalog, in UTC to the
	// microsecond. [UploadStates] sets it.
	Touched time.Time
}

// UploadStates stores the states of uploads for all processes. Implementations are safe for
// concurrent use, also by several processes.
//
// States need not survive a power failure. The client restarts an upload whose state is lost.
// An upload whose state reverts to an earlier one continues from there.
type UploadStates interface {
	// CreateUpload records the state of a new upload. Errors: CodeConflict if its identifier
	// exists.
	CreateUpload(ctx context.Context, s UploadState) error
	// Upload returns the state of an upload. Errors: CodeNotFound, also for callers other than the
	// owner and for malformed identifiers.
	Upload(ctx context.Context, owner UploadOwner, id string) (UploadState, error)
	// SwapUpload replaces Offset, Hash and Place of the upload s.ID, and adds 1 to its version, if
	// its version is still s.Version. Errors: CodeNotFound; CodeConflict if another caller swapped
	// it.
	SwapUpload(ctx context.Context, s UploadState) error
	// EndUpload deletes an upload if its version is still the given one. Errors: as SwapUpload.
	EndUpload(ctx context.Context, id string, version int64) error
	// StaleUploads lists the uploads that were last written longer than idle ago, by the clock of
	// the catalog, oldest first. An idle of 0 means all uploads.
	StaleUploads(ctx context.Context, idle time.Duration) iter.Seq2[UploadState, error]
}

// NewUpload returns the state of a new upload. Its identifier is a random UUID, version 4 of
// RFC 9562.
func NewUpload(owner UploadOwner) UploadState {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	id := fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
	return UploadState{ID: id, Owner: owner, Version: 1}
}

// Sum returns the sha256 of the bytes received, ready for more bytes. Errors: CodeInternal if
// Hash is not a valid state.
func (s UploadState) Sum() (hash.Hash, error) {
	sum := sha256.New()
	if len(s.Hash) == 0 && s.Offset == 0 {
		return sum, nil
	}
	state, ok := sum.(encoding.BinaryUnmarshaler)
	if !ok {
		return nil, registry.Errorf(registry.CodeInternal, "upload %s: this program cannot restore the state of its sha256", s.ID)
	}
	if err := state.UnmarshalBinary(s.Hash); err != nil {
		return nil, registry.Errorf(registry.CodeInternal, "upload %s: the state of its hash is damaged: %w", s.ID, err)
	}
	return sum, nil
}

// Advanced returns the state after n received bytes, whose sha256 is sum.
func (s UploadState) Advanced(n int64, sum hash.Hash) (UploadState, error) {
	state, ok := sum.(encoding.BinaryMarshaler)
	if !ok {
		return UploadState{}, registry.Errorf(registry.CodeInternal, "upload %s: this program cannot save the state of its sha256", s.ID)
	}
	raw, err := state.MarshalBinary()
	if err != nil {
		return UploadState{}, registry.Errorf(registry.CodeInternal, "upload %s: save the state of its hash: %w", s.ID, err)
	}
	s.Offset, s.Hash = n, raw
	return s, nil
}

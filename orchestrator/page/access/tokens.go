package access

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"heartbeat/orchestrator/deadline"
	"heartbeat/orchestrator/store"
)

// How long a link may wait to be opened, and how long a token lasts.
const (
	LinkLasts  = 10 * time.Minute
	TokenLasts = 90 * 24 * time.Hour
)

// mostTokens and mostLinks are how many there may be at once.
const mostTokens, mostLinks = 200, 50

// usedEvery is how exactly it is known when a token was last used.
const usedEvery = time.Hour

// Token is what a browser has, or, as a link, may get once.
type Token struct {
	ID   string    `json:"id"`
	Name string    `json:"name"`
	Role Role      `json:"role"`
	Made time.Time `json:"made"`
	// Used is when it was last used, to the hour; zero: never.
	Used  time.Time `json:"used,omitzero"`
	Until time.Time `json:"until"`
}

// Secret is a token or a link with the hash of its secret. The secret itself is nowhere.
type Secret struct {
	Token
	Hash string
	Link bool
}

// HashOf is how a secret is kept.
func HashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

func (s Secret) lasts() time.Duration {
	if s.Link {
		return LinkLasts
	}
	return TokenLasts
}

// The three kinds, of which each is good for its own purpose alone.
func (s Secret) isLink() bool    { return s.Link }
func (s Secret) isBrowser() bool { return !s.Link && s.Role != Command }
func (s Secret) isCommand() bool { return !s.Link && s.Role == Command }

// Errors of tokens.
var (
	ErrWrong = errors.New("the link is invalid, expired (10 minutes) or already used")
	ErrMany  = errors.New("there are too many already")
	ErrNone  = errors.New("there is no such token")
)

// Keeper has a fleet's tokens in its store, and in memory: only one may do so. Several
// goroutines may use it at once.
type Keeper struct {
	store *store.Store
	now   func() time.Time

	changing sync.Mutex // held while the store is changed
	mu       sync.Mutex
	known    []Secret
	// tried is when Used was last written down, or could not be.
	tried map[string]time.Time // :: id →
}

// Open returns the keeper of a store; now is the clock, nil the system's.
func Open(ctx context.Context, s *store.Store, now func() time.Time) (*Keeper, error) {
	if now == nil {
		now = time.Now
	}
	k := &Keeper{store: s, now: now}
	return k, k.load(ctx)
}

// load reads the store. From then on times have the reading of the clock that only goes on.
func (k *Keeper) load(ctx context.Context) error {
	all, err := store.Get(ctx, k.store.Reader, func(v *store.View) ([]Secret, error) { return kept(v, k.now()) })
	if err != nil {
		return fmt.Errorf("cannot read the page's tokens: %w", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known = all
	return nil
}

// good returns those whose time is not over.
func (k *Keeper) good() []Secret {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	return slices.DeleteFunc(slices.Clone(k.known), func(s Secret) bool { return deadline.Over(s.Until, now) })
}

// change has do change those that are good, and keeps what that has changed, unless it returns
// an error. Those whose time is over go.
func (k *Keeper) change(ctx context.Context, do func(good []Secret) ([]Secret, error)) error {
	k.changing.Lock()
	defer k.changing.Unlock()
	after, err := do(k.good())
	if err != nil {
		return err
	}
	k.mu.Lock()
	before := k.known
	k.mu.Unlock()
	err = k.store.Write(ctx, func(c *store.Change) error {
		for _, s := range before {
			if find(after, s.Hash) < 0 {
				if err := remove(c, s); err != nil {
					return err
				}
			}
		}
		for _, s := range after {
			if at := find(before, s.Hash); at < 0 || before[at] != s {
				if err := Keep(c, s, k.now()); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if errors.Is(err, store.ErrUnknown) {
		err = errors.Join(err, k.load(context.WithoutCancel(ctx)))
	}
	if err != nil {
		return fmt.Errorf("cannot change the page's tokens: %w", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known = after
	return nil
}

// find returns where a hash stands, or -1. It takes as long for each.
func find(all []Secret, hash string) int {
	at := -1
	for i, s := range all {
		if subtle.ConstantTimeCompare([]byte(s.Hash), []byte(hash)) == 1 {
			at = i
		}
	}
	return at
}

// of returns where the secret of a kind stands, or -1.
func of(all []Secret, secret string, kind func(Secret) bool) int {
	at := find(all, HashOf(secret))
	if at >= 0 && !kind(all[at]) {
		return -1
	}
	return at
}

// room refuses one more of a kind where there are as many as there may be.
func room(all []Secret, kind func(Secret) bool, most int, refused string) error {
	n := 0
	for _, s := range all {
		if kind(s) {
			n++
		}
	}
	if n < most {
		return nil
	}
	return fmt.Errorf(refused, ErrMany, most)
}

const (
	noLink  = "cannot make a link: %w (%d)"
	noToken = "cannot make a token: %w (%d): revoke some"
)

// Link makes what a link ends with: good once, for LinkLasts. name is what the token
// is called that it becomes; "": its id.
func (k *Keeper) Link(ctx context.Context, name string, role Role) (secret string, link Token, err error) {
	return k.make(ctx, Secret{Token: Token{Name: name, Role: role}, Link: true}, Secret.isLink, mostLinks, noLink)
}

// Command makes a token for the command line, and returns its secret, which is kept
// nowhere: it proves who answers where a fleet's file says approvals: {by: page}.
func (k *Keeper) Command(ctx context.Context, name string) (secret string, made Token, err error) {
	return k.make(ctx, Secret{Token: Token{Name: name, Role: Command}}, Secret.isCommand, mostTokens, noToken)
}

func (k *Keeper) make(ctx context.Context, s Secret, kind func(Secret) bool, most int, refused string) (secret string, made Token, err error) {
	secret, s.ID = newSecret(), newID()
	s.Name, s.Hash, s.Made, s.Until = cmp.Or(s.Name, s.ID), HashOf(secret), k.now(), k.now().Add(s.lasts())
	err = k.change(ctx, func(all []Secret) ([]Secret, error) { return append(all, s), room(all, kind, most, refused) })
	return secret, s.Token, err
}

// Host returns the name below localhost that this fleet's links have on this machine. Browsers
// send a cookie to every port of its host, whoever serves there: at a name of the fleet's own,
// which nobody else knows, it goes to this fleet alone. Browsers take each name below localhost
// for this machine (RFC 6761, section 6.3).
func (k *Keeper) Host(ctx context.Context) (name string, err error) {
	err = k.store.Write(ctx, func(c *store.Change) error {
		err := KeepHost(c, "heartbeat-"+strings.ToLower(newSecret()[:10])+".localhost")
		if err == nil {
			name, err = host(&c.View)
		}
		return err
	})
	return name, err
}

// Offer returns a link that is good, by what it ends with, and leaves it so; ok is false if it
// is not good (any more).
func (k *Keeper) Offer(link string) (offered Token, ok bool) {
	all := k.good()
	at := of(all, link, Secret.isLink)
	if at < 0 {
		return Token{}, false
	}
	return all[at].Token, true
}

// Redeem takes what a link ends with, and returns the secret of a token: the first
// time. ErrWrong: it is not good (any more).
func (k *Keeper) Redeem(ctx context.Context, link string) (secret string, made Token, err error) {
	secret = newSecret()
	err = k.change(ctx, func(all []Secret) ([]Secret, error) {
		at := of(all, link, Secret.isLink)
		if at < 0 {
			return nil, ErrWrong
		}
		made = all[at].Token
		made.Made, made.Used, made.Until = k.now(), k.now(), k.now().Add(TokenLasts)
		err := room(all, Secret.isBrowser, mostTokens, noToken)
		return append(slices.Delete(all, at, at+1), Secret{Token: made, Hash: HashOf(secret)}), err
	})
	return secret, made, err
}

// FindCommand returns the token of a command line; ErrNone: the secret has none (any more).
func (k *Keeper) FindCommand(ctx context.Context, secret string) (found Token, err error) {
	err = k.change(ctx, func(all []Secret) ([]Secret, error) {
		at := of(all, secret, Secret.isCommand)
		if at < 0 {
			return nil, ErrNone
		}
		all[at].Used = k.now()
		found = all[at].Token
		return all, nil
	})
	return found, err
}

// HasCommand reports whether there is a token for the command line.
func (k *Keeper) HasCommand() bool { return slices.ContainsFunc(k.good(), Secret.isCommand) }

// Find returns the token of a secret; ok is false if it has none (any more).
func (k *Keeper) Find(ctx context.Context, secret string) (found Token, ok bool) {
	all := k.good()
	at := of(all, secret, Secret.isBrowser)
	if at < 0 {
		return Token{}, false
	}
	found = all[at].Token
	if now := k.now(); now.Sub(found.Used) >= usedEvery && k.tries(found.ID, now) {
		// Who cannot write it down may still look.
		_ = k.change(context.WithoutCancel(ctx), func(all []Secret) ([]Secret, error) {
			if at := of(all, secret, Secret.isBrowser); at >= 0 {
				all[at].Used = k.now()
			}
			return all, nil
		})
	}
	return found, true
}

// tries reports whether a token's use is to be written down now: after a failure it is
// tried again as late as after a success.
func (k *Keeper) tries(id string, now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now.Sub(k.tried[id]) < usedEvery {
		return false
	}
	if k.tried == nil || len(k.tried) > mostTokens {
		k.tried = map[string]time.Time{}
	}
	k.tried[id] = now
	return true
}

// Revoke ends the tokens and links that are called by their names or ids, or all; one
// that there is not changes nothing (ErrNone).
func (k *Keeper) Revoke(ctx context.Context, all bool, names ...string) (gone []Token, err error) {
	err = k.change(ctx, func(good []Secret) ([]Secret, error) {
		for _, name := range names {
			if !slices.ContainsFunc(good, func(s Secret) bool { return s.ID == name || s.Name == name }) {
				return nil, fmt.Errorf("cannot revoke %q: %w", name, ErrNone)
			}
		}
		return slices.DeleteFunc(good, func(s Secret) bool {
			goes := all || slices.Contains(names, s.ID) || slices.Contains(names, s.Name)
			if goes {
				gone = append(gone, s.Token)
			}
			return goes
		}), nil
	})
	if err != nil {
		return nil, err
	}
	return gone, nil
}

// newSecret returns 130 bits that nobody guesses.
func newSecret() string { return rand.Text() }

func newID() string {
	var b [3]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

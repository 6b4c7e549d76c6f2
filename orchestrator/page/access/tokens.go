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
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"heartbeat/hook/durable"
	"heartbeat/hook/flock"
	"heartbeat/orchestrator/state"
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

// secretive is a token with the hash of its secret. The secret itself is nowhere.
type secretive struct {
	Token
	Hash string `json:"sha256"`
}

// tokens is the file's content.
type tokens struct {
	Links  []secretive `json:"links"`
	Tokens []secretive `json:"tokens"`
}

// Errors of tokens.
var (
	ErrWrong = errors.New("the link was used already, is older than ten minutes, or is none")
	ErrMany  = errors.New("there are too many already")
	ErrNone  = errors.New("there is no such token")
)

// Keeper keeps the tokens of a fleet in its state directory. Several processes, and
// goroutines, may use it at once.
type Keeper struct {
	stateDir string
	now      func() time.Time

	mu    sync.Mutex
	kept  tokens
	stamp durable.Stamp
	// tried is when Used was last written down, or could not be.
	tried map[string]time.Time // :: id →
}

// NewKeeper returns the keeper of a state directory; now is the clock, nil the
// system's.
func NewKeeper(stateDir string, now func() time.Time) *Keeper {
	if now == nil {
		now = time.Now
	}
	return &Keeper{stateDir: stateDir, now: now}
}

func (k *Keeper) file() string { return filepath.Join(k.stateDir, "page", "tokens.json") }

// Link makes what a link ends with: good once, for LinkLasts. name is what the token
// is called that it becomes; "": its id.
func (k *Keeper) Link(name string, role Role) (secret string, link Token, err error) {
	secret, id := newSecret(), newID()
	link = Token{ID: id, Name: cmp.Or(name, id), Role: role, Made: k.now(), Until: k.now().Add(LinkLasts)}
	err = k.change(func(t *tokens) error {
		if len(t.Links) >= mostLinks {
			return fmt.Errorf("cannot make a link: %w (%d)", ErrMany, mostLinks)
		}
		t.Links = append(t.Links, secretive{link, hashOf(secret)})
		return nil
	})
	return secret, link, err
}

// Offer returns a link that is good, by what it ends with, and leaves it so. ErrWrong: it
// is not good (any more).
func (k *Keeper) Offer(link string) (Token, error) {
	all, err := k.read()
	if err != nil {
		return Token{}, err
	}
	at := find(all.Links, link)
	if at < 0 {
		return Token{}, ErrWrong
	}
	return all.Links[at].Token, nil
}

// Redeem takes what a link ends with, and returns the secret of a token: the first
// time. ErrWrong: it is not good (any more).
func (k *Keeper) Redeem(link string) (secret string, made Token, err error) {
	secret = newSecret()
	err = k.change(func(t *tokens) error {
		at := find(t.Links, link)
		if at < 0 {
			return ErrWrong
		}
		if len(t.Tokens) >= mostTokens {
			return fmt.Errorf("cannot make a token: %w (%d): revoke some", ErrMany, mostTokens)
		}
		made = t.Links[at].Token
		made.Made, made.Used, made.Until = k.now(), k.now(), k.now().Add(TokenLasts)
		t.Links = slices.Delete(t.Links, at, at+1)
		t.Tokens = append(t.Tokens, secretive{made, hashOf(secret)})
		return nil
	})
	return secret, made, err
}

// Find returns the token of a secret; ErrNone: it has none (any more).
func (k *Keeper) Find(secret string) (Token, error) {
	all, err := k.read()
	if err != nil {
		return Token{}, err
	}
	at := find(all.Tokens, secret)
	if at < 0 {
		return Token{}, ErrNone
	}
	found := all.Tokens[at].Token
	if now := k.now(); now.Sub(found.Used) >= usedEvery && k.tries(found.ID, now) {
		_ = k.change(func(t *tokens) error { // who cannot write it down may still look
			if at := find(t.Tokens, secret); at >= 0 {
				t.Tokens[at].Used = k.now()
			}
			return nil
		})
	}
	return found, nil
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

// Tokens returns those that are good, and the links that nobody has opened yet.
func (k *Keeper) Tokens() (tokens, links []Token, err error) {
	all, err := k.read()
	if err != nil {
		return nil, nil, err
	}
	for _, t := range all.Tokens {
		tokens = append(tokens, t.Token)
	}
	for _, l := range all.Links {
		links = append(links, l.Token)
	}
	return tokens, links, nil
}

// Revoke ends the tokens and links that are called by their names or ids, or all; one
// that there is not changes nothing (ErrNone).
func (k *Keeper) Revoke(all bool, names ...string) (gone []Token, err error) {
	err = k.change(func(t *tokens) error {
		for _, name := range names {
			is := func(s secretive) bool { return s.ID == name || s.Name == name }
			if !slices.ContainsFunc(t.Tokens, is) && !slices.ContainsFunc(t.Links, is) {
				return fmt.Errorf("cannot revoke %q: %w", name, ErrNone)
			}
		}
		goes := func(s secretive) bool {
			if !all && !slices.Contains(names, s.ID) && !slices.Contains(names, s.Name) {
				return false
			}
			gone = append(gone, s.Token)
			return true
		}
		t.Tokens, t.Links = slices.DeleteFunc(t.Tokens, goes), slices.DeleteFunc(t.Links, goes)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return gone, nil
}

// find returns where the token of a secret stands, or -1. It takes as long for each.
func find(all []secretive, secret string) int {
	hash, at := []byte(hashOf(secret)), -1
	for i, s := range all {
		if subtle.ConstantTimeCompare([]byte(s.Hash), hash) == 1 {
			at = i
		}
	}
	return at
}

// read returns what is good now. It reads the file only when that has changed.
func (k *Keeper) read() (tokens, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := durable.StampOf(os.Lstat(k.file()))
	if !k.stamp.Same(now) {
		var t tokens
		if err := state.Load(k.file(), &t); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return tokens{}, err
		}
		k.kept, k.stamp = t, now
	}
	return k.good(k.kept), nil
}

// good returns the tokens whose time is not over.
func (k *Keeper) good(t tokens) tokens {
	over := func(s secretive) bool { return !k.now().Before(s.Until) }
	return tokens{slices.DeleteFunc(slices.Clone(t.Links), over), slices.DeleteFunc(slices.Clone(t.Tokens), over)}
}

// lockPatience is how long to wait for another process that changes the tokens.
const lockPatience = 5 * time.Second

// change changes the file, unless do returns an error.
func (k *Keeper) change(do func(*tokens) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), lockPatience)
	defer cancel()
	unlock, err := flock.Lock(ctx, filepath.Join(k.stateDir, ".page-lock"))
	if err != nil {
		return fmt.Errorf("cannot change the page's tokens: %w", err)
	}
	defer func() { _ = unlock() }()
	var t tokens
	if err := state.Load(k.file(), &t); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	t = k.good(t)
	if err := do(&t); err != nil {
		return err
	}
	return state.Save(k.file(), t)
}

func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// newSecret returns 130 bits that nobody guesses.
func newSecret() string { return rand.Text() }

func newID() string {
	var b [3]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

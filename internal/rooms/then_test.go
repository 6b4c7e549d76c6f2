package rooms

// shapeThen is what TestShape prints of commit 8e3db45 (HEARTBEAT_SHAPE_OF=CHECKOUT).
var shapeThen = struct{ tokens, formats, rooms, methods, up, returns, third string }{
	"511505", "56", "77", "293 (hook/inbox.Queue)", "36, 57, 70", "34 (45 stays in 11 files)", "530",
}

/** A program that takes questions and answers none: for tests of what the server does then. */
process.on('message', () => undefined)
process.on('disconnect', () => process.exit())

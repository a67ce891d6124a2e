mod anthropic;
mod array;
mod bounds;
mod chat;
mod cuts;
mod fixtures;
mod gemini;
mod responses;

//! The scripted provider: it answers as the real ones do, follows its script, breaks as it is told to, and tells what it got.

mod anthropic_gemini;
mod faults;
mod openai;
mod script;
mod watching;

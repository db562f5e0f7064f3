//! A line that the user types.

use crate::report::clean::is_unsafe;
use crossterm::event::KeyCode;

/// Characters that a line may have.
const LENGTH: usize = 400;

/// What a typed line is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Look for a text.
    Search,
    /// Show only what fits.
    Filter,
    /// Write a bundle to this file.
    Save,
}

/// What became of the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Typed {
    /// It is being typed.
    More,
    /// It was left.
    Left,
    /// It is complete.
    Done(String),
}

/// A line being typed.
#[derive(Clone, Debug)]
pub struct Prompt {
    /// What it is for.
    pub purpose: Purpose,
    /// What stands before it.
    pub title: String,
    /// What was typed.
    pub text: String,
}

impl Prompt {
    /// Takes a key.
    pub fn key(&mut self, code: KeyCode, is_control: bool) -> Typed {
        match code {
            KeyCode::Enter => return Typed::Done(std::mem::take(&mut self.text)),
            KeyCode::Esc => return Typed::Left,
            KeyCode::Char('c' | 'g') if is_control => return Typed::Left,
            KeyCode::Char('u') if is_control => self.text.clear(),
            KeyCode::Char('h') if is_control => drop(self.text.pop()),
            KeyCode::Backspace if self.text.is_empty() => return Typed::Left,
            KeyCode::Backspace => drop(self.text.pop()),
            KeyCode::Char(c) if !is_control && !is_unsafe(c) && self.text.chars().count() < LENGTH => self.text.push(c),
            _ => {}
        }
        Typed::More
    }
}

//! Figures as SVG: an overview and those of §VI of the NDT paper for an [`Evaluation`], and learning
//! curves.
//!
//! A figure suits light and dark pages and print: it has no background, its text and axes are in
//! `currentColor`, and the colours of its curves have a contrast of 3 : 1 on white and on near-black.

pub mod axis;
pub mod bars;
mod dots;
mod evaluation;
mod learning;
pub(crate) mod panels;
pub mod plot;
pub mod style;
pub mod timeline;

pub use learning::{LearningCurve, learning};

use bufgym_util::input::lines;

use crate::data::{Entry, Evaluation};

/// Name of the figure that represents a whole evaluation.
pub(crate) const OVERVIEW: &str = "ratio-to-dt";

/// A figure that could not be drawn.
#[derive(Debug, thiserror::Error)]
#[error("cannot draw figure {name}: {reason}")]
pub struct FigureError {
    name: String,
    reason: String,
}

/// One figure.
#[derive(Clone, Debug)]
pub struct Figure {
    /// File name without `.svg`; also the identifier within the page.
    pub name: String,
    /// Title of the figure.
    pub title: String,
    /// Description of the content for readers who cannot see it, and explanation of how to read it.
    pub description: String,
    width: u32,
    height: u32,
    /// Everything between the `<svg>` tags.
    body: String,
}

/// The colours of a figure that is not part of a page.
const STANDALONE_STYLE: &str = "<style>svg{color:#1c1e21;background:#fff;font-family:system-ui,sans-serif}\
@media(prefers-color-scheme:dark){svg{color:#e4e6ea;background:#16181c}}</style>";

impl Figure {
    /// Returns the figure as a separate file.
    pub fn standalone(&self) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" {}{STANDALONE_STYLE}\n{}</svg>\n",
            self.width,
            self.height,
            self.head(),
            self.body
        )
    }

    /// Returns the figure as an element of an HTML page, as wide as its container.
    pub fn inline(&self) -> String {
        format!("<svg {}{}</svg>", self.head(), self.body)
    }

    fn head(&self) -> String {
        format!(
            "viewBox=\"0 0 {} {}\" role=\"img\" aria-labelledby=\"{name}-title {name}-desc\">\n\
             <title id=\"{name}-title\">{}</title>\n<desc id=\"{name}-desc\">{}</desc>\n",
            self.width,
            self.height,
            escape(&self.title),
            escape(&self.description),
            name = self.name,
        )
    }
}

/// Escapes a text for XML, which has no control characters, neither literally nor as references (XML 1.0
/// §2.2).
fn escape(text: &str) -> String {
    lines(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Draws a figure with `paint`.
pub(crate) fn draw(
    name: &str,
    (width, height): (u32, u32),
    title: &str,
    description: String,
    paint: impl FnOnce(&style::Canvas) -> style::Drawn,
) -> Result<Figure, FigureError> {
    let mut svg = String::new();
    style::paint(&mut svg, (width, height), paint).map_err(|reason| FigureError {
        name: name.to_string(),
        reason,
    })?;
    // The opening tag of plotters is replaced by that of `Figure`. Black stands for currentColor, which
    // plotters does not have.
    let body = svg.find('>').map_or("", |end| &svg[end + 1..]);
    // Somebody else has chosen the names in labels.
    let body = lines(body)
        .trim()
        .trim_end_matches("</svg>")
        .replace("\"#000000\"", "\"currentColor\"");
    Ok(Figure {
        name: name.to_string(),
        title: title.to_string(),
        description,
        width,
        height,
        body,
    })
}

/// Draws all figures that the evaluation has the data for.
///
/// # Errors
/// Fails if the drawing library refuses a figure.
pub fn figures(evaluation: &Evaluation) -> Result<Vec<Figure>, FigureError> {
    let mut figures = Vec::new();
    figures.extend(dots::overview(evaluation)?);
    figures.extend(evaluation::mean_fct_cdf(evaluation)?);
    figures.extend(evaluation::mean_ratio(evaluation)?);
    figures.extend(evaluation::tail_ratio(evaluation)?);
    figures.extend(evaluation::trigger_intervals(evaluation)?);
    if let Some(timeline) = &evaluation.timeline {
        let entries: Vec<&Entry> = evaluation.policies.iter().map(|p| &p.entry).collect();
        figures.extend(timeline::timelines(timeline, &entries)?);
    }
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;

    #[test]
    fn the_overview_and_the_figures_of_the_paper_are_there() {
        let figures = figures(&synthetic::typical(0.8)).unwrap();
        let names: Vec<&str> = figures.iter().map(|f| f.name.as_str()).collect();
        let expected = [
            "ratio-to-dt",
            "cdf-mean-fct",
            "ratio-mean-fct",
            "ratio-p99-fct",
            "trigger-intervals",
            "timeline-port-3",
            "timeline-port-7",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn a_figure_names_itself_and_every_policy() {
        let evaluation = synthetic::typical(0.8);
        for figure in figures(&evaluation).unwrap().iter().take(4) {
            let svg = figure.standalone();
            assert!(svg.starts_with("<svg xmlns"), "{}", figure.name);
            assert!(svg.contains("<title id=") && svg.contains("<desc id="));
            assert!(!svg.contains("#000000"), "ink follows the page");
            assert_eq!(svg.matches("<svg").count(), 1);
            for name in ["ndt-fct", "edt", "cs", "st", "dt", "unlimited"] {
                assert!(svg.contains(name), "{name} in {}", figure.name);
            }
        }
    }

    #[test]
    fn equal_and_missing_numbers_are_drawn_too() {
        let evaluation =
            synthetic::evaluation(&[("cs", &[10.0]), ("dt", &[10.0]), ("unlimited", &[10.0])]);
        assert!(figures(&evaluation).unwrap().len() >= 3);
        let failed = synthetic::evaluation(&[
            ("cs", &[f64::NAN]),
            ("dt", &[f64::NAN]),
            ("unlimited", &[f64::NAN]),
        ]);
        assert!(figures(&failed).is_ok());
    }
}
